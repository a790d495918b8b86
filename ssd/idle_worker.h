// A thread that does an SSD's idle work (Ssd::run_idle) while its host sends nothing.
//
// Hysteresis: the host marks what it sends with Request; work begins once it has sent nothing for a
// whole period, so one to two periods after its last request, and ends before its next step when a
// request begins, which so waits for one step at most. Then the quiet has to be as long again. When
// nothing is left worth doing, the device is left alone until the host has sent something.
//
// Thread safety: Request in any thread; start() once, after any fork. The destructor ends the
// thread, after one step at most. Crash: that of a step, see ssd.h.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/mutex.h"
#include "ssd/background.h"
#include "ssd/ssd.h"

namespace streamfs::ssd {

class IdleWorker {
 public:
  // While one lives the host is not idle.
  class Request {
   public:
    explicit Request(IdleWorker& worker) : worker_(worker) { ++worker_.under_way_; }
    ~Request() {
      ++worker_.ended_;
      --worker_.under_way_;
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   private:
    IdleWorker& worker_;
  };

  // `limits.stop` is asked as well.
  IdleWorker(Ssd& ssd, std::chrono::milliseconds period, const IdleLimits& limits = {});
  ~IdleWorker();
  IdleWorker(const IdleWorker&) = delete;
  IdleWorker& operator=(const IdleWorker&) = delete;

  void start();

 private:
  void run();
  bool pause();
  bool has_to_stop() const { return stopping_ || under_way_ != 0; }

  Ssd& ssd_;
  const std::chrono::milliseconds period_;
  IdleLimits limits_;
  std::atomic<uint64_t> under_way_{0}, ended_{0};  // requests
  std::atomic<bool> stopping_{false};              // set under mutex_, read anywhere
  Mutex mutex_;                                    // leaf; for the pause alone
  CondVar stop_;
  std::thread thread_;
};

}  // namespace streamfs::ssd
