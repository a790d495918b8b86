#include "fuse-fs/tools/watchdog.h"

#include <sys/statvfs.h>
#include <systemd/sd-daemon.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace streamfs::tools {

Watchdog::Watchdog(Hooks hooks, std::chrono::milliseconds interval)
    : hooks_(std::move(hooks)), interval_(interval) {
  if (interval_.count() > 0) thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Watchdog::pause() {
  const MutexLock lock(mutex_);
  if (!stopping_) ended_.wait_for(mutex_, interval_);
  return !stopping_;
}

void Watchdog::run() {
  do {
    if (unmounting_) {
      hooks_.tell("WATCHDOG=1\nSTATUS=unmounting");
    } else if (hooks_.answers()) {
      hooks_.tell("WATCHDOG=1\nSTATUS=" + hooks_.status());
    }
  } while (pause());
}

std::chrono::milliseconds watchdog_interval() {
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return std::chrono::milliseconds(0);
  return std::chrono::milliseconds(microseconds / 3000 + 1);
}

Watchdog::Hooks watchdog_hooks(const std::string& mountpoint, std::function<std::string()> status) {
  return {[mountpoint] {
            struct statvfs answer{};
            // EIO is an answer too: a mount that is shut down gives it.
            return statvfs(mountpoint.c_str(), &answer) == 0 || errno == EIO;
          },
          std::move(status), [](const std::string& lines) { sd_notify(0, lines.c_str()); }};
}

}  // namespace streamfs::tools
