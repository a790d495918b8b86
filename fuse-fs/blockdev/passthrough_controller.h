// An NVMe namespace through Linux's character device /dev/ngXnY. start() sends I/O commands through
// io_uring if the kernel passes commands (5.19 and later) and this thread gets a ring. Otherwise it
// sends them by ioctl, and the call returns after the completion. io() and admin() always go by
// ioctl; all admin commands but identify need CAP_SYS_ADMIN.
//
// While open, it holds the block device of the namespace exclusively (if there is one), so that
// nobody mounts it, and a lock on the character device. No test has met a real device: tests cover
// the structures handed to the kernel, the ring on a substitute file, the reading of /sys and the
// refusals that need no device.
//
// Thread safety and crashes: see controller.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/nvme/command_ring.h"
#include "fuse-fs/nvme/controller.h"

namespace streamfs::blockdev {

class PassthroughController final : public nvme::Controller {
 public:
  // Returns whether `path` is a character device named ngXnY.
  static bool names(const std::string& path);
  // Errors: ENOENT, EACCES, EBUSY (mounted, or another holder after `wait_seconds`), ENOTBLK (no
  // NVMe namespace), EINVAL (partitioned).
  static Result<std::unique_ptr<PassthroughController>> open(const std::string& path,
                                                             const OpenOptions& options);
  ~PassthroughController() override;

  const std::string& path() const override { return path_; }
  uint32_t nsid() const override { return nsid_; }
  const char* transport() const override { return transport_.c_str(); }
  uint64_t max_transfer_bytes() const override { return max_transfer_bytes_; }
  Result<uint32_t> admin(const nvme::Command& command, Bytes data) override;
  Result<uint32_t> io(const nvme::Command& command, Bytes data) override;
  void start(const nvme::Command& command, Bytes data, nvme::Done done) override {
    start_after({}, command, data, std::move(done));
  }
  void start_after(std::chrono::milliseconds pause, const nvme::Command& command, Bytes data,
                   nvme::Done done) override;

 private:
  PassthroughController(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Result<void> claim(const std::string& block_name, double wait_seconds);
  void open_ring();

  const std::string path_;
  const int fd_;
  int block_fd_ = -1;
  uint32_t nsid_ = 0;
  uint64_t max_transfer_bytes_ = 0;
  std::unique_ptr<nvme::CommandRing> ring_;  // null: commands go by ioctl
  std::string transport_ = "io_uring passthrough";
};

}  // namespace streamfs::blockdev
