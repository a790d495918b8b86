#include "fuse-fs/tools/mount_program.h"

#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/event.h"
#include "base/exit_codes.h"
#include "base/human_bytes.h"
#include "base/result.h"
#include "fuse-fs/frontend/connection_guard.h"
#include "fuse-fs/frontend/control_server.h"
#include "fuse-fs/frontend/fuse_log.h"
#include "fuse-fs/frontend/kernel_tuning.h"
#include "fuse-fs/frontend/meters.h"
#include "fuse-fs/frontend/session.h"
#include "fuse-fs/frontend/status_json.h"
#include "fuse-fs/tools/failure.h"
#include "fuse-fs/tools/out_of_memory.h"
#include "fuse-fs/tools/watchdog.h"
#include "pmem/region.h"

namespace streamfs::tools {
namespace {

constexpr const char* kProgram = "streamfs";
constexpr int kWakeUp = SIGUSR2;  // ends the signal thread

// Takes signals on a thread of its own, which may wait for the unmount.
class SignalThread {
 public:
  // Requires: no thread has been started yet, because threads inherit the mask.
  static void block() {
    const sigset_t all = handled();
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  SignalThread(frontend::Session& session, Watchdog& watchdog)
      : thread_([&session, &watchdog] {
          const sigset_t all = handled();
          int signal = 0;
          if (sigwait(&all, &signal) != 0 || signal == kWakeUp) return;
          spdlog::info("signal {}: unmounting", signal);
          watchdog.unmounting();
          Launch::stopping();
          session.request_unmount();
        }) {}
  ~SignalThread() {
    pthread_kill(thread_.native_handle(), kWakeUp);
    thread_.join();
  }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  static sigset_t handled() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, kWakeUp}) sigaddset(&set, signal);
    return set;
  }
  std::thread thread_;
};

frontend::Session::Options session_options(const MountCommand& command) {
  frontend::Session::Options out;
  out.source = command.data;
  out.mountpoint = command.mountpoint;
  out.mount_options = command.generic;
  out.nonempty = command.nonempty;
  out.allow_other = command.allow_other || geteuid() == 0;
  out.transport = command.transport;
  out.enable_uring = command.enable_uring;
  out.request_timeout_s = command.request_timeout_s;
  out.debug = command.debug;
  return out;
}

// Opens the control socket. A mount without it works, but cannot be inspected.
std::unique_ptr<frontend::ControlServer> open_control(data::Filesystem& fs,
                                                      frontend::Meters& meters) {
  const std::string path = frontend::control_directory() + "/" +
                           frontend::uuid_text(fs.geometry().super().uuid) + ".sock";
  auto server = frontend::ControlServer::open(fs, meters, path);
  if (server) return std::move(server).value();
  spdlog::warn("no control socket: {}", server.error().message());
  return nullptr;
}

void announce(const MountCommand& command, data::Filesystem& fs) {
  const Result<data::Status> now = fs.status();
  if (!now) return;
  const char* mirror = !now->mirrored                 ? ""
                       : now->mirror_degraded.empty() ? ", mirrored"
                                                      : ", DEGRADED: one copy of two";
  log_event(Event::kMounted, spdlog::level::info,
            fmt::format("{} at {}: META {} is {}{}{}, placement {}", command.data,
                        command.mountpoint, command.meta, pmem::to_string(now->meta_class),
                        now->meta_log ? " with a log on DATA" : "", mirror, now->placement_mode));
}

// Returns a line for `systemctl status`.
std::string state_line(const MountCommand& command, data::Filesystem& fs) {
  const Result<data::Status> now = fs.status();
  if (!now) return now.error().message();
  if (now->degraded_read_only) return "READ-ONLY: " + now->degraded_reason;
  const std::string nand =
      now->device.nand_known ? ", " + human_bytes(now->device.nand_bytes) + " NAND" : "";
  return fmt::format("{} written by applications, {} to {}{}", human_bytes(now->app_bytes),
                     human_bytes(now->device.written_bytes), command.data, nand);
}

int serve(const MountCommand& command, Launch& launch, data::Filesystem& fs,
          frontend::Session::Options options) {
  const auto meters = std::make_unique<frontend::Meters>();
  const auto control = open_control(fs, *meters);
  options.context = {control ? control->path() : std::string{}, command.filesystem.dirsync,
                     command.direct_io, &meters->ops, &meters->sizes};
  auto session = frontend::Session::mount(fs, system_clock(), options);
  if (!session) return fail(kProgram, session.error());
  Watchdog watchdog(watchdog_hooks(command.mountpoint, [&] { return state_line(command, fs); }),
                    watchdog_interval());
  const SignalThread signals(**session, watchdog);
  bool answered = false;
  const Result<void> served = (*session)->serve([&] {
    answered = true;
    stop_when_out_of_memory();
    launch.ready();  // From here on a daemon logs to syslog.
    announce(command, fs);
  });
  if (served && answered) return exit_code::kOk;
  const Error lost{EIO, "the kernel never connected to " + command.mountpoint};
  return fail(kProgram, served ? lost : served.error());
}

// Limits glibc's arenas, by default eight for each processor. Memory that one thread allocates is
// often freed by another here, and each arena keeps the pages over which such pieces are scattered.
void limit_heap_arenas() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing runs beside it yet
  (void)mallopt(M_ARENA_MAX, static_cast<int>(std::max(2U, std::thread::hardware_concurrency())));
}

}  // namespace

int run_mount(const MountCommand& command, Launch launch) {
  limit_heap_arenas();
  SignalThread::block();
  frontend::ConnectionGuard guard;
  const bool io_flusher = frontend::become_io_flusher();
  frontend::route_fuse_log();
  if (const auto place = frontend::check_mountpoint(command.mountpoint, command.nonempty); !place) {
    return fail(kProgram, place.error());
  }
  auto fs = data::Filesystem::mount(command.meta, command.data, command.filesystem, system_clock());
  if (!fs) return fail(kProgram, fs.error());
  frontend::Session::Options options = session_options(command);
  options.io_flusher = io_flusher;
  options.guard = &guard;
  const int code = serve(command, launch, **fs, std::move(options));
  const Watchdog draining({[] { return true; }, [] { return std::string("unmounting"); },
                           [](const std::string& lines) { sd_notify(0, lines.c_str()); }},
                          watchdog_interval());
  const Result<void> closed = (*fs)->unmount();
  if (!closed) {
    spdlog::error("unmounting: {}", closed.error().message());
    return fail(kProgram, closed.error());
  }
  if (code == exit_code::kOk)
    log_event(Event::kUnmounted, spdlog::level::info, command.mountpoint + " unmounted");
  return code;
}

}  // namespace streamfs::tools
