// Small numbers for threads: each thread takes the lowest free one at its first call and gives it
// back when it ends. The numbers distribute per-thread rings and counters.
// Thread safety: any thread.
#pragma once

#include <cstddef>

namespace streamfs {

size_t take_thread_number();  // for thread_number() alone

inline size_t thread_number() {
  constexpr size_t kNone = ~size_t{0};
  thread_local size_t mine = kNone;
  if (mine == kNone) mine = take_thread_number();
  return mine;
}

}  // namespace streamfs
