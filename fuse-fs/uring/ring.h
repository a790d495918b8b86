// Uses io_uring with a ring for each thread. A thread submits its requests and waits for them in
// one system call, and a completion wakes no other thread.
//
// Thread safety: any thread. A thread's requests are submitted and completed by that thread alone,
// in submit(), drive() and ~Ring(), or when the thread ends. A thread that starts requests
// therefore has to call drive() until they are complete.
#pragma once

#include <liburing.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace streamfs::uring {

struct Answer {
  int32_t result = 0;  // negative: -errno
  uint64_t more = 0;   // big_cqe[0] of rings with IORING_SETUP_CQE32
};

// A request, which is submitted until completed() returns true.
class Request {
 public:
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  virtual ~Request() = default;
  virtual void prepare(io_uring_sqe& entry) = 0;  // fills in an entry
  // Handles the answer. Returns false to be submitted again. Must not block; may start requests.
  // For two seconds, a request answered with EINTR or EAGAIN is submitted again without this call.
  virtual bool completed(const Answer& answer) = 0;

 private:
  friend class ThreadRing;
  unsigned refused_ = 0;                                 // answers of EINTR or EAGAIN
  std::chrono::steady_clock::time_point first_refused_;  // time of the first of them
};

// Explains why io_uring_setup(2) failed with `error`, a positive errno, to an administrator.
std::string refusal(int error, const std::filesystem::path& proc = "/proc");

class ThreadRing;
struct ThreadRings;

class Ring {
 public:
  static constexpr int kNoFile = -1;
  // Opens a ring for the calling thread; other threads open theirs at their first request. `depth`
  // bounds a thread's requests in flight; more wait in memory. `flags` are those of
  // io_uring_setup(2). `file` is number 0 for entries with IOSQE_FIXED_FILE.
  // Errors: those of io_uring_setup(2); ENOSYS and EPERM if rings are refused.
  static Result<std::unique_ptr<Ring>> open(unsigned depth, unsigned flags = 0, int file = kNoFile);
  // Waits for this thread's requests, and closes the rings of all threads. Requires: no other
  // thread has requests.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Returns whether the kernel knows this operation; false if this thread can open no ring.
  bool supports(int opcode);
  // Returns whether this thread has a ring or can open one.
  bool is_to_be_had();
  // Queues a request for this thread's next submit() or drive(). If the thread gets no ring, the
  // request is completed in this call with the error of opening one.
  void start(std::unique_ptr<Request> request);

 private:
  Ring(unsigned depth, unsigned flags, int file);
  Result<std::shared_ptr<ThreadRing>> mine();

  const unsigned depth_, flags_;
  const int file_;
  const std::shared_ptr<ThreadRings> rings_;
};

// Submits this thread's requests on all its rings, for a thread with other work before drive().
// Requires: not called in completed().
void submit();

// Submits this thread's requests on one of its rings that has some, waits for an answer on that
// ring and completes all its answers. A signal may end the wait without one. Returns false if no
// ring of this thread has requests. Requires: not called in completed().
bool drive();

}  // namespace streamfs::uring
