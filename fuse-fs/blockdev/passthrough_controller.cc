#include "fuse-fs/blockdev/passthrough_controller.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/nvme_ioctl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/io_engine.h"
#include "fuse-fs/blockdev/lock.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/command_ring.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/linux.h"
#include "fuse-fs/nvme/status.h"

namespace streamfs::blockdev {
namespace {

constexpr const char* kSys = "/sys";

std::filesystem::path resolved(const std::string& path) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(path, failed);
  return failed ? std::filesystem::path(path) : real;
}

}  // namespace

bool PassthroughController::names(const std::string& path) {
  struct stat st{};
  return !nvme::block_name_of(resolved(path)).empty() && stat(path.c_str(), &st) == 0 &&
         S_ISCHR(st.st_mode);
}

Result<std::unique_ptr<PassthroughController>> PassthroughController::open(
    const std::string& path, const OpenOptions& options) {
  const std::string block_name = nvme::block_name_of(resolved(path));
  const int fd = ::open(path.c_str(), (options.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
  if (fd < 0) return Error{errno, path};
  std::unique_ptr<PassthroughController> controller(new PassthroughController(path, fd));
  const int nsid = ioctl(fd, NVME_IOCTL_ID);
  if (nsid <= 0) return Error{ENOTBLK, path + " is no NVMe namespace"};
  controller->nsid_ = static_cast<uint32_t>(nsid);
  if (const auto partitions = nvme::partitions_of(kSys, block_name); !partitions.empty())
    return Error{EINVAL, fmt::format("{} is a whole namespace, and {} is partitioned ({}): name a "
                                     "partition's block device, or take the partitions away",
                                     path, block_name, fmt::join(partitions, ", "))};
  SFS_TRY(controller->claim(block_name, options.wait_seconds));
  controller->max_transfer_bytes_ = nvme::max_transfer_bytes(kSys, block_name);
  controller->open_ring();
  return controller;
}

// Claims the namespace. The open block device keeps others from mounting it; the lock keeps out
// other streamfs processes.
Result<void> PassthroughController::claim(const std::string& block_name, double wait_seconds) {
  const std::string block = "/dev/" + block_name;
  SFS_ASSIGN(block_fd_, retry_while_busy(wait_seconds, [&]() -> Result<int> {
               const int fd = ::open(block.c_str(), O_RDONLY | O_EXCL | O_CLOEXEC);
               if (fd >= 0 || errno == ENOENT) return fd;
               return Error{errno, block + ", the same namespace"};
             }));
  return lock_exclusively(fd_, path_, wait_seconds);
}

void PassthroughController::open_ring() {
  auto ring = nvme::CommandRing::open(fd_, nsid_, kDefaultQueueDepth);
  if (ring.ok()) {
    ring_ = std::move(*ring);
  } else {
    transport_ = "ioctl, one command at a time: " + ring.error().message();
    spdlog::warn("{}: {}", path_, transport_);
  }
}

PassthroughController::~PassthroughController() {
  ring_.reset();
  if (block_fd_ >= 0) close(block_fd_);
  flock(fd_, LOCK_UN);  // as in FileDevice: the ring's reference to the file ends a little later
  close(fd_);
}

Result<uint32_t> PassthroughController::admin(const nvme::Command& command, Bytes data) {
  return nvme::by_ioctl([this](auto& each) { return ioctl(fd_, NVME_IOCTL_ADMIN64_CMD, &each); },
                        command, data, nvme::admin_name(command.opcode));
}

Result<uint32_t> PassthroughController::io(const nvme::Command& command, Bytes data) {
  return nvme::by_ioctl([this](auto& each) { return ioctl(fd_, NVME_IOCTL_IO64_CMD, &each); },
                        command, data, nvme::io_name(command.opcode));
}

// A thread that gets no ring of its own (no memory, too many files) uses the ioctl.
void PassthroughController::start_after(std::chrono::milliseconds pause,
                                        const nvme::Command& command, Bytes data, nvme::Done done) {
  if (ring_ != nullptr && ring_->is_to_be_had())
    return ring_->start_after(pause, command, data, std::move(done));
  std::this_thread::sleep_for(pause);
  done(io(command, data));
}

}  // namespace streamfs::blockdev
