// Lets requests in until it is closed, and then waits for the requests that are inside.
//
//   open ── enter() → true ──► inside ── leave() ──►
//   closed ── enter() → false: the caller answers EIO
//
// Thread safety: any thread, but a request inside must not call wait_until_empty(): it would wait
// for itself. After a crash: memory only.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread_counters.h"

namespace streamfs::data {

class Gate {
 public:
  // While a Pass that is true exists, wait_until_empty() does not return.
  class Pass {
   public:
    explicit Pass(Gate& gate) : gate_(gate), inside_(gate.enter()) {}
    ~Pass() {
      if (inside_) gate_.leave();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const { return inside_; }

   private:
    Gate& gate_;
    const bool inside_;
  };

  bool closed() const { return closed_.load(std::memory_order_relaxed); }
  // Closes the gate for good. Returns whether this call closed it.
  bool close() { return !closed_.exchange(true); }
  // Requires: the gate is closed. Returns once no request is inside.
  void wait_until_empty() const;

 private:
  enum Count : uint8_t { kEntered, kLeft, kCounts };
  // The fence orders the count before the look at closed_: either this call sees that the gate is
  // closed, or wait_until_empty() sees this call.
  bool enter() {
    counts_.add(kEntered, 1);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!closed()) return true;
    leave();
    return false;
  }
  void leave() {
    std::atomic_thread_fence(std::memory_order_release);
    counts_.add(kLeft, 1);
  }

  ThreadCounters<kCounts> counts_;
  std::atomic<bool> closed_{false};
};

}  // namespace streamfs::data
