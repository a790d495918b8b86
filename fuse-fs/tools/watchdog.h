// Tells systemd that the mount answers, with a line about its state.
//
// Every third of WatchdogSec= it asks the mountpoint through the kernel, as any program would. If
// the filesystem does not answer, systemd hears nothing and ends it. Once unmounting has begun, the
// mountpoint cannot be asked and draining may take long, so systemd is told that it is alive.
// Thread safety: one object at a time; any thread may call unmounting().
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"

namespace streamfs::tools {

class Watchdog {
 public:
  struct Hooks {
    std::function<bool()> answers;                 // may take for ever, and so may ~Watchdog() then
    std::function<std::string()> status;           // a line
    std::function<void(const std::string&)> tell;  // sd_notify's lines
  };
  // Starts a thread, which calls the hooks. Interval 0: does nothing, because systemd does not ask
  // for it.
  Watchdog(Hooks hooks, std::chrono::milliseconds interval);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void unmounting() { unmounting_ = true; }

 private:
  bool pause();
  void run();

  const Hooks hooks_;
  const std::chrono::milliseconds interval_;
  std::atomic<bool> unmounting_{false};
  Mutex mutex_;  // leaf
  CondVar ended_;
  bool stopping_ SFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Returns a third of WatchdogSec=, the interval for Watchdog; 0 if systemd does not watch this
// process.
std::chrono::milliseconds watchdog_interval();
// Returns hooks that ask `mountpoint` by statvfs(2) and tell systemd. EIO, the answer of a mount
// that is shut down, counts as an answer, too.
Watchdog::Hooks watchdog_hooks(const std::string& mountpoint, std::function<std::string()> status);

}  // namespace streamfs::tools
