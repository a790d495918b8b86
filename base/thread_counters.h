// Counters for many threads. Each thread adds in a cache line of its own, and sum() adds the lines
// up, because a shared line would move between the cores at every store to META.
// Thread safety: all methods, any thread; a sum may lack concurrent additions.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/thread_number.h"
#include "base/types.h"

namespace streamfs {

template <size_t kCounters>
class ThreadCounters {
 public:
  void add(size_t counter, uint64_t n) {
    lines_[thread_number() % kLines].values[counter].fetch_add(n, std::memory_order_relaxed);
  }
  uint64_t sum(size_t counter) const {
    uint64_t sum = 0;
    for (const Line& line : lines_) sum += line.values[counter].load(std::memory_order_relaxed);
    return sum;
  }

 private:
  static constexpr size_t kLines = 16;  // with more threads, some share a line
  struct alignas(kLineSize) Line {
    std::array<std::atomic<uint64_t>, kCounters> values{};
  };
  std::array<Line, kLines> lines_{};
};

}  // namespace streamfs
