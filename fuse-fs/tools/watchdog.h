// Tells systemd that the mount answers, and in a few words how it is.
//
// Each third of WatchdogSec= the mountpoint is asked through the kernel, as any program would: a
// filesystem that answers nobody stays silent here and is ended. Once unmounting began nobody can
// ask, and draining may take long: then it is alive as long as it lives.
// Thread safety: one at a time; unmounting() from any thread. Crash: the watchdog's very case.
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
    std::function<bool()> answers;                 // may take for ever
    std::function<std::string()> status;           // a line
    std::function<void(const std::string&)> tell;  // sd_notify's lines
  };
  // Does nothing where systemd does not ask for it: interval 0.
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

// How often systemd wants to hear of this process; 0: not at all.
std::chrono::milliseconds watchdog_interval();
Watchdog::Hooks watchdog_hooks(const std::string& mountpoint, std::function<std::string()> status);

}  // namespace streamfs::tools
