// io_uring with a ring for each thread: who starts a request waits for it in the same system call
// that submits it, so that an answer wakes nobody but who asked.
//
// Thread safety: start() from any thread; what a thread has started is its own: submitted and
// completed by that thread's drive(), or at its end. completed() must not block; it may start more.
// Crash: nothing is kept.
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
  uint64_t more = 0;   // of rings with IORING_SETUP_CQE32: the first of what comes beside it
};

// What is submitted, as often as it takes.
class Request {
 public:
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  virtual ~Request() = default;
  virtual void prepare(io_uring_sqe& entry) = 0;  // fills in an entry
  // False to be submitted again; what the kernel answered with EINTR or EAGAIN is so without
  // asking, for two seconds.
  virtual bool completed(const Answer& answer) = 0;

 private:
  friend class ThreadRing;
  unsigned refused_ = 0;                                 // how often in vain
  std::chrono::steady_clock::time_point first_refused_;  // the first of these
};

// What io_uring_setup(2) failed for, and what an administrator can do about it.
std::string refusal(int error, const std::filesystem::path& proc = "/proc");

class ThreadRing;
struct ThreadRings;

class Ring {
 public:
  static constexpr int kNoFile = -1;
  // `depth` bounds what a thread has in flight; it may start more. `flags` of io_uring_setup(2); a
  // `file` is number 0 for entries with IOSQE_FIXED_FILE. Errors: what io_uring_setup says; ENOSYS
  // and EPERM where rings are not to be had.
  static Result<std::unique_ptr<Ring>> open(unsigned depth, unsigned flags = 0, int file = kNoFile);
  // Waits for what this thread has in flight. Nobody else may have anything.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool supports(int opcode);
  // Whether this thread has one, or gets one; who starts a request without is answered with the
  // error of that.
  bool is_to_be_had();
  void start(std::unique_ptr<Request> request);

 private:
  Ring(unsigned depth, unsigned flags, int file);
  Result<std::shared_ptr<ThreadRing>> mine();

  const unsigned depth_, flags_;
  const int file_;
  const std::shared_ptr<ThreadRings> rings_;
};

// Submits what this thread started on any ring, for who has something to do meanwhile. Not in
// completed().
void submit();

// Submits what this thread started on any ring and waits until something of it was answered; false:
// nothing is in flight. Not in completed().
bool drive();

}  // namespace streamfs::uring
