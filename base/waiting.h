// Lets a thread try an operation: it may finish there if it has to wait for no device.
//
//   {
//     const Trying trying;                       // this thread must not wait
//     const Result<void> done = operation();     // calls may_wait() where it would wait
//     if (is_would_wait(done)) ...               // let another thread run the operation again
//   }
//
// Waiting means device I/O, a lock that is held across device I/O, and a growth of META. Locks that
// are held for memory accesses only do not count. An operation returns would_wait() before it
// changes anything that a second run would change again.
//
// Thread safety: any thread. A Trying concerns the calling thread; abort_on_waits() and
// waits_while_trying() concern the process.
#pragma once

#include <cerrno>
#include <cstdint>

#include "base/result.h"

namespace streamfs {

// Forbids the calling thread to wait while it lives. Requires: no other Trying of this thread
// lives.
class Trying {
 public:
  Trying();
  ~Trying();
  Trying(const Trying&) = delete;
  Trying& operator=(const Trying&) = delete;
};

// Returns false while this thread is Trying.
bool may_wait();

inline Error would_wait() {
  return EWOULDBLOCK;
}
// Returns whether `error` is would_wait(). Always false outside a Trying. In one no device is
// asked, so EWOULDBLOCK cannot be a device's error.
inline bool is_would_wait(const Error& error) {
  return error.code == EWOULDBLOCK && !may_wait();
}
template <typename T>
bool is_would_wait(const Result<T>& done) {
  return !done.ok() && is_would_wait(done.error());
}

// Call it right before a wait for a device. In a Trying such a wait is a defect: it is counted, and
// aborts the process if abort_on_waits() was called.
void about_to_wait();
void abort_on_waits();
uint64_t waits_while_trying();

}  // namespace streamfs
