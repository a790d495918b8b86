// A thread that does an SSD's idle work (Ssd::run_idle) while its host sends nothing.
//
// Hysteresis: the host marks its requests with Request. Work begins once a whole period passed
// without a request, one to two periods after the last one. It stops before its next step when a
// request begins, so a request waits for one step at most; then a quiet period is needed again.
// When no work is left, the thread does none until the host has sent a request.
//
// Thread safety: Request in any thread; start() once, after any fork. The destructor ends the
// thread, after one step at most. After a crash: as after a step, see ssd.h.
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
  // The host is not idle while a Request exists.
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

  // `ssd` outlives this. Work also ends when `limits.stop` returns true.
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
  Mutex mutex_;                                    // leaf; only for the pause
  CondVar stop_;
  std::thread thread_;
};

}  // namespace streamfs::ssd
