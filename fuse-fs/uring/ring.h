// One io_uring: one submission lock, a bound on what is in flight, one completion thread.
//
// Thread safety: start() from any thread. A request's completed() runs on the ring's completion
// thread and must not block; it may start more. A caller that has filled the queue waits, unless it
// is such a completion.
// Crash: nothing is kept.
#pragma once

#include <liburing.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
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
  // Fills in an entry; the submission lock is held.
  virtual void prepare(io_uring_sqe& entry) = 0;
  // False to be submitted again; what the kernel answered with EINTR or EAGAIN is so without
  // asking.
  virtual bool completed(const Answer& answer) = 0;
};

// What io_uring_setup(2) failed for, and what an administrator can do about it.
std::string refusal(int error, const std::filesystem::path& proc = "/proc");

class Ring {
 public:
  static constexpr int kNoFile = -1;
  // `flags` of io_uring_setup(2); a `file` is number 0 for entries with IOSQE_FIXED_FILE. Errors:
  // what that says; ENOSYS and EPERM where rings are not to be had.
  static Result<std::unique_ptr<Ring>> open(unsigned depth, unsigned flags = 0, int file = kNoFile);
  ~Ring();  // waits for everything in flight
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool supports(int opcode);  // before the first start()

  void start(std::unique_ptr<Request> request);

 private:
  Ring(unsigned depth, unsigned flags) : depth_(depth), flags_(flags) {}
  Result<void> set_up(int file);
  void submit(Request* request) SFS_REQUIRES(mutex_);  // null: an end to completions
  void complete_all();
  void complete(Request* request, const Answer& answer);

  const unsigned depth_, flags_;
  io_uring ring_{};
  bool is_set_up_ = false, has_file_ = false;
  std::thread completions_;
  Mutex mutex_;  // leaf: the submission queue and the count
  CondVar room_;
  // The ring orders submission before completion; this says so to the memory model.
  std::atomic<uint64_t> handed_over_{0};
  unsigned in_flight_ SFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace streamfs::uring
