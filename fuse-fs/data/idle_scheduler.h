// Uses the time in which programs make no request: trims freed blocks, then lets the data device
// work (blockdev/idle.h) until a request comes.
//
//   busy ──quiet for long enough──► working ──nothing left──► rested ──┐
//    ▲ ▲                              │ a request ends the step        │ a request
//    │ └──────────────────────────────┘                                │
//    └─────────────────────────────────────────────────────────────────┘
// With kAuto the thread does nothing on battery; with kOff there is no thread. work() ignores both.
// The device chooses the blocks that it collects, within IdleLimits.
//
// Thread safety: work() and status() from any thread; round() only where start() was not called;
// stop() from one thread at a time. After a crash: nothing of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/activity.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/data/idle_detector.h"

namespace streamfs::data {

class IdleScheduler {
 public:
  struct Setup {
    IdleWorkWhen when = IdleWorkWhen::kAuto;
    std::function<bool()> on_battery;
    std::function<Result<void>()> reclaim;  // frees and trims; gives way to programs
  };
  IdleScheduler(blockdev::Device& device, Activity& activity, Clock& clock, Setup setup);
  ~IdleScheduler() { stop(); }

  void start();
  void stop();   // returns once the thread and its idle work have ended
  void round();  // one step of the thread; tests call it in place of start()

  // Waits while another thread lets the device work. Then frees and trims, and lets the device work
  // until `milliseconds` have passed since that wait.
  // kMaintain returns at once if a request is under way, and the next request stops the device. A
  // device that works by itself (IdleMeans::kByItself) is told to begin and at once to end.
  // kPowerOff calls Device::prepare_poweroff() instead, and requests do not stop it.
  // Errors: those of `reclaim` and of the device.
  enum class Asked : uint8_t { kMaintain, kPowerOff };
  Result<MaintenanceRun> work(Asked what, uint64_t milliseconds);
  IdleStatus status();

 private:
  static constexpr uint32_t kLookMs = 100;
  static constexpr uint64_t kBatteryMs = 10'000;  // between two looks at the power supply
  using Work = Result<blockdev::IdleWork>;

  bool pause(uint32_t milliseconds);  // false when stopping
  bool allowed(uint64_t now_ms);
  void use_idle_time();
  void wait_for_request(uint64_t begun);
  void wake();
  void note(const Work& done, bool interrupted);
  void set_state(IdleStatus::State state);

  blockdev::Device& device_;
  Activity& activity_;
  Clock& clock_;
  const Setup setup_;
  const blockdev::IdleCapabilities capabilities_;
  IdleDetector detector_;  // the thread's own
  // rested_at_: activity_.begun() when nothing was left to do.
  uint64_t rested_at_ = UINT64_MAX, battery_asked_ms_ = UINT64_MAX;  // the thread's own
  bool battery_ = false;                                             // the thread's own
  std::atomic<bool> stopping_{false};
  std::atomic<int> asking_{0};        // threads in work() that wait for turn_
  std::atomic<int64_t> woken_ns_{0};  // time of a request, steady clock; 0: none
  Mutex turn_;                        // held by the thread that lets the device work
  Mutex mutex_;                       // leaf
  CondVar changed_;
  IdleStatus status_ SFS_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace streamfs::data
