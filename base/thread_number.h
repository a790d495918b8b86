// Numbers for threads, from 0 in the order in which they ask first: what is kept once a core or a
// few times over is shared out by them.
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstddef>

namespace streamfs {

inline size_t thread_number() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace streamfs
