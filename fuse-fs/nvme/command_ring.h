// NVMe I/O commands through io_uring (IORING_OP_URING_CMD), on a file that supports them.
// Thread safety: as uring::Ring. A Done runs once, in the uring::drive() of the thread that started
// the command, or in start() if that thread gets no ring. It must not block.
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
  // Sends a Flush to find out whether the file takes commands. Does not own `fd`.
  // Errors: those of io_uring_setup(2) (ENOSYS, EPERM: no rings; EINVAL: no large entries, before
  // Linux 5.19); EOPNOTSUPP if the kernel or the file takes no commands.
  static Result<std::unique_ptr<CommandRing>> open(int fd, uint32_t nsid, unsigned depth);

  void start(const Command& command, Bytes data, Done done) {
    start_after({}, command, data, std::move(done));
  }
  // Starts a command after a pause, during which the thread can complete other requests.
  void start_after(std::chrono::milliseconds pause, const Command& command, Bytes data, Done done);
  // Returns whether this thread has a ring or can open one.
  bool is_to_be_had() { return ring_->is_to_be_had(); }
  // Starts a command and waits for its completion. Requires: not called in a Done.
  Result<uint32_t> wait_for(const Command& command, Bytes data);

 private:
  CommandRing(std::unique_ptr<uring::Ring> ring, int fd) : ring_(std::move(ring)), fd_(fd) {}

  const std::unique_ptr<uring::Ring> ring_;
  const int fd_;
};

}  // namespace streamfs::nvme
