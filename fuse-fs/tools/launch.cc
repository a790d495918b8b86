#include "fuse-fs/tools/launch.h"

#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/exit_codes.h"
#include "fuse-fs/tools/journal_sink.h"

namespace streamfs::tools {
namespace {

// Waits in the first process, and exits as its child says.
[[noreturn]] void wait_for(pid_t child, int hear_fd) {
  char byte = 0;
  while (read(hear_fd, &byte, 1) < 0 && errno == EINTR) {
  }
  if (byte == 'r') _exit(exit_code::kOk);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : exit_code::kIo);
}

void leave_terminal() {
  const int null = open("/dev/null", O_RDWR);
  if (null < 0) return;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  if (null > STDERR_FILENO) close(null);
}

}  // namespace

Launch Launch::background() {
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0) return foreground();
  const pid_t child = fork();
  if (child < 0) return foreground();
  if (child > 0) {
    close(pipe_fds[1]);
    wait_for(child, pipe_fds[0]);
  }
  close(pipe_fds[0]);
  setsid();
  if (chdir("/") != 0) spdlog::debug("staying in the current directory");
  return Launch(pipe_fds[1]);
}

void Launch::ready() {
  sd_notify(0, "READY=1");
  if (tell_fd_ < 0) return;
  leave_terminal();
  spdlog::sink_ptr sink = journal_sink();
  if (sink == nullptr)
    sink = std::make_shared<spdlog::sinks::syslog_sink_mt>("streamfs", LOG_PID, LOG_DAEMON, false);
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("streamfs", std::move(sink)));
  if (write(tell_fd_, "r", 1) != 1) spdlog::debug("nobody waits for the mount");
  close(tell_fd_);
  tell_fd_ = -1;
}

void Launch::stopping() {
  sd_notify(0, "STOPPING=1");
}

void log_to_stderr(Talk talk) {
  spdlog::sink_ptr sink = stderr_is_journal() ? journal_sink() : nullptr;
  if (sink == nullptr) sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("streamfs", std::move(sink)));
  spdlog::set_pattern("%H:%M:%S.%e %l: %v");
  spdlog::set_level(talk == Talk::kWarnings      ? spdlog::level::warn
                    : talk == Talk::kInformation ? spdlog::level::info
                                                 : spdlog::level::debug);
}

}  // namespace streamfs::tools
