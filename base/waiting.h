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
// Thread safety: the state belongs to the calling thread. waits_while_trying() may be called by any
// thread.
#pragma once

#include <cerrno>
#include <cstdint>

#include "base/result.h"

namespace streamfs {

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
// Returns whether an error of a call in a Trying is would_wait(). No device was asked there, so no
// device has returned that error.
inline bool is_would_wait(const Error& error) {
  return error.code == EWOULDBLOCK && !may_wait();
}
template <typename T>
bool is_would_wait(const Result<T>& done) {
  return !done.ok() && is_would_wait(done.error());
}

// Call it where a thread is about to wait for a device. Counts a wait that a Trying forbids, which
// is a defect. Aborts the process in this case if abort_on_waits() was called.
void about_to_wait();
void abort_on_waits();
uint64_t waits_while_trying();

}  // namespace streamfs
