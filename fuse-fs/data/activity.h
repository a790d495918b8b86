// What programs ask, counted: who works in idle time looks here. Threads count apart, so that no
// cache line goes between them at every request.
//
// Thread safety: any thread. A watcher arms with watch() and is called by the thread of the next
// request, once, before that is counted, or of the one after it; it must not block, and has to look
// by itself now and then. Crash: memory only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/thread_counters.h"

namespace streamfs::data {

class Activity {
 public:
  // While one lives, programs are not idle.
  class Request {
   public:
    explicit Request(Activity& activity) : activity_(activity) { activity_.begin(); }
    ~Request() { activity_.counts_.add(kEnded, 1); }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   private:
    Activity& activity_;
  };

  void touch() { const Request request(*this); }
  uint64_t begun() const { return counts_.sum(kBegun); }
  // In this order: what began in between makes it look busy, never idle.
  bool under_way() const {
    const uint64_t ended = counts_.sum(kEnded);
    std::atomic_thread_fence(std::memory_order_acquire);
    return begun() != ended;
  }

  void on_request(std::function<void()> wake) { wake_ = std::move(wake); }  // before any thread
  void watch(bool armed) { watched_.store(armed); }

 private:
  enum Count : uint8_t { kBegun, kEnded, kCounts };
  void begin() {
    if (watched_.load() && watched_.exchange(false)) wake_();
    counts_.add(kBegun, 1);
  }

  ThreadCounters<kCounts> counts_;
  std::atomic<bool> watched_{false};
  std::function<void()> wake_;
};

}  // namespace streamfs::data
