// Counts the data requests and metadata changes of programs, for work that is done in idle time.
// Threads mostly have counters of their own (thread_counters.h), so that no cache line moves
// between cores at every request.
//
// A watcher calls watch(true) and then waits. The thread of the next request calls the function of
// on_request() once, before it counts the request. A request that begins during watch(true) may
// miss the watch; then the next request after it calls the function. A watcher must therefore also
// look at begun() from time to time.
//
// Thread safety: any thread. The function must not block. After a crash: memory only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/thread_counters.h"

namespace streamfs::data {

class Activity {
 public:
  // While a Request exists, programs are not idle.
  class Request {
   public:
    explicit Request(Activity& activity) : activity_(activity) { activity_.begin(); }
    ~Request() { activity_.counts_.add(kEnded, 1); }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   private:
    Activity& activity_;
  };

  // Counts a request that ends at once.
  void touch() { const Request request(*this); }
  uint64_t begun() const { return counts_.sum(kBegun); }
  // Reads kEnded first: a request that begins in between makes programs look busy, never idle.
  bool under_way() const {
    const uint64_t ended = counts_.sum(kEnded);
    std::atomic_thread_fence(std::memory_order_acquire);
    return begun() != ended;
  }

  // Sets the function for watch(). Requires: no other thread uses this object yet.
  void on_request(std::function<void()> wake) { wake_ = std::move(wake); }
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
