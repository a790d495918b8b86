// Small numbers for threads: the lowest that no other thread has, given back when a thread ends.
// What is kept several times over, a ring or a line of counters each, is shared out by them.
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
