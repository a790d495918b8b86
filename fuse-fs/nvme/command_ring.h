// NVMe I/O commands through one io_uring (IORING_OP_URING_CMD), on a file that takes them.
// Thread safety: start() from any thread; a Done runs once, on the ring's completion thread, and
// must not block. A caller that has filled the queue waits, unless it is a Done itself.
// Crash: nothing is kept.
#pragma once

#include <liburing.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"

namespace streamfs::nvme {

class CommandRing {
 public:
  // Does not own `fd`. Errors: what io_uring_setup(2) says (ENOSYS, EPERM: no rings; EINVAL: none
  // with large entries, before Linux 5.19); EOPNOTSUPP where the kernel cannot pass commands, or
  // the file takes none, which a Flush finds out.
  static Result<std::unique_ptr<CommandRing>> open(int fd, uint32_t nsid, unsigned depth);
  ~CommandRing();  // waits for everything in flight
  CommandRing(const CommandRing&) = delete;
  CommandRing& operator=(const CommandRing&) = delete;

  void start(const Command& command, Bytes data, Done done);
  // The same, waiting for the answer; not in a Done.
  Result<uint32_t> wait_for(const Command& command, Bytes data);

 private:
  struct Request {
    Command command;
    Bytes data;
    Done done;
    bool stop = false;
  };

  CommandRing(int fd, unsigned depth) : fd_(fd), depth_(depth) {}
  Result<void> set_up();
  void submit(Request* request) SFS_REQUIRES(mutex_);
  void complete_all();
  bool completed(Request* request, int status, uint64_t result);

  const int fd_;
  const unsigned depth_;
  io_uring ring_{};
  bool is_set_up_ = false;
  std::thread completions_;
  Request stop_{{}, {}, {}, true};
  Mutex mutex_;  // leaf: the submission queue and the count
  CondVar room_;
  // The ring orders submission before completion; this says so to the memory model.
  std::atomic<uint64_t> handed_over_{0};
  unsigned in_flight_ SFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace streamfs::nvme
