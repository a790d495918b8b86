#include "fuse-fs/frontend/connection_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/result.h"
#include "fuse-fs/frontend/kernel_tuning.h"

namespace streamfs::frontend {
namespace {

constexpr int kServerDied = SIGUSR1;

// Moves `fd` to descriptor 3, opens /dev/null as 0 to 2, and closes the rest. A pipe to the
// daemon's caller would otherwise stay open.
void keep_only(int fd) {
  const int null = open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2}) dup2(null, standard);
  dup2(fd, 3);
  close_range(4, ~0U, 0);
}

// Moves a descriptor above 2. A caller may have closed the standard ones, and keep_only() replaces
// them.
int above_standard(int fd) {
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

// Renames the process, because pidof(8) and pkill(1) find the daemon by name and would kill the
// guard with it.
void take_name() {
  constexpr const char* kName = "fs-guard";
  prctl(PR_SET_NAME, kName);
  char* const words = program_invocation_name;  // argv[0]
  const size_t room = std::strlen(words);
  std::memset(words, 0, room);
  std::string_view(kName).copy(words, room);
}

// Runs the guard: receives the connection's number, replies with 0 or an errno, and waits for the
// death of the daemon's first thread. The open `abort` file refers to this connection even after
// the kernel has given its number to another mount.
[[noreturn]] void guard(int socket, pid_t server) {
  sigset_t all, died;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_PDEATHSIG, kServerDied);
  if (getppid() != server) _exit(0);
  take_name();
  keep_only(socket);
  unsigned connection = 0;
  if (recv(3, &connection, sizeof connection, 0) != sizeof connection) _exit(0);
  const Result<int> abort = open_abort(connection);
  const int failure = abort.ok() ? 0 : abort.error().code;
  (void)send(3, &failure, sizeof failure, MSG_NOSIGNAL);
  if (failure != 0) _exit(0);
  sigemptyset(&died);
  sigaddset(&died, kServerDied);
  sigwaitinfo(&died, nullptr);
  _exit(write(*abort, "1", 1) == 1 ? 0 : 1);
}

}  // namespace

ConnectionGuard::ConnectionGuard() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    failure_ = errno;
    return;
  }
  for (int& end : ends) end = above_standard(end);
  (void)signal(SIGCHLD, SIG_DFL);  // if it is ignored, another process may get the guard's pid
  const pid_t server = getpid();
  guard_ = fork();
  if (guard_ == 0) guard(ends[1], server);
  if (guard_ < 0) failure_ = errno;
  socket_ = ends[0];
  close(ends[1]);
}

ConnectionGuard::~ConnectionGuard() {
  if (socket_ >= 0) close(socket_);
  if (guard_ <= 0) return;
  kill(guard_, SIGKILL);
  waitpid(guard_, nullptr, 0);
}

Result<void> ConnectionGuard::watch(unsigned connection) {
  int failure = failure_;
  if (failure == 0 &&
      (send(socket_, &connection, sizeof connection, MSG_NOSIGNAL) != sizeof connection ||
       recv(socket_, &failure, sizeof failure, 0) != sizeof failure))
    failure = EIO;
  if (failure == 0) return {};
  return Error{failure, "guarding the connection"};
}

}  // namespace streamfs::frontend
