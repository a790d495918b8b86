// NVMe I/O commands through io_uring (IORING_OP_URING_CMD), on a file that takes them.
// Thread safety: as uring::Ring: a Done runs once, in the uring::drive() of the thread that
// started the command, and must not block.
// Crash: nothing is kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/uring/ring.h"

namespace streamfs::nvme {

class CommandRing {
 public:
  // Does not own `fd`. Errors: what io_uring_setup(2) says (ENOSYS, EPERM: no rings; EINVAL: none
  // with large entries, before Linux 5.19); EOPNOTSUPP where the kernel cannot pass commands, or
  // the file takes none, which a Flush finds out.
  static Result<std::unique_ptr<CommandRing>> open(int fd, uint32_t nsid, unsigned depth);

  void start(const Command& command, Bytes data, Done done) {
    start_after({}, command, data, std::move(done));
  }
  // After a pause, in which the thread can wait for other answers.
  void start_after(std::chrono::milliseconds pause, const Command& command, Bytes data, Done done);
  // Whether this thread has a ring, or gets one.
  bool is_to_be_had() { return ring_->is_to_be_had(); }
  // The same, waiting for the answer; not in a Done.
  Result<uint32_t> wait_for(const Command& command, Bytes data);

 private:
  CommandRing(std::unique_ptr<uring::Ring> ring, int fd) : ring_(std::move(ring)), fd_(fd) {}

  const std::unique_ptr<uring::Ring> ring_;
  const int fd_;
};

}  // namespace streamfs::nvme
