#include "fuse-fs/blockdev/device.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/emulated_controller.h"
#include "fuse-fs/blockdev/emulated_device.h"
#include "fuse-fs/blockdev/file_device.h"
#include "fuse-fs/blockdev/mmc_device.h"
#include "fuse-fs/blockdev/nvme_device.h"
#include "fuse-fs/blockdev/passthrough_controller.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/discovery.h"
#include "fuse-fs/uring/ring.h"

namespace streamfs::blockdev {

namespace {

constexpr std::string_view kEmulated = "emu:", kMmc = "mmc:", kNvme = "nvme:",
                           kNvmeStreams = "nvme:streams:", kNvmeFdp = "nvme:fdp:";

Result<std::unique_ptr<Device>> open_emulated_nvme(const std::string& data,
                                                   const OpenOptions& options) {
  EmulatedNvme kind;
  if (data.starts_with(kNvmeFdp)) {
    kind.mechanism = nvme::Mechanism::kFdp;
  } else if (!data.starts_with(kNvmeStreams)) {
    return Error{EINVAL, data +
                             ": write nvme:streams:PATH or nvme:fdp:PATH for an emulated SSD, "
                             "and /dev/ngXnY for a real one"};
  }
  SFS_ASSIGN(std::unique_ptr<nvme::Controller> controller,
             EmulatedController::open(std::string(path_of(data)), kind, options));
  SFS_ASSIGN(std::unique_ptr<Device> device, NvmeDevice::open(std::move(controller), options));
  return device;
}

}  // namespace

Result<void> check_range(BlockNo first, uint64_t blocks, uint64_t capacity) {
  if (first.value <= capacity && blocks <= capacity - first.value) return {};
  return Error{EINVAL, fmt::format("blocks {} + {} lie beyond the device's {}", first.value, blocks,
                                   capacity)};
}

std::string_view path_of(std::string_view data) {
  if (data.starts_with(kEmulated)) return data.substr(kEmulated.size());
  if (data.starts_with(kMmc)) return data.substr(kMmc.size());
  if (!data.starts_with(kNvme)) return data;
  const size_t colon = data.find(':', kNvme.size());
  return data.substr(colon == std::string_view::npos ? kNvme.size() : colon + 1);
}

Result<std::unique_ptr<Device>> open_device(const std::string& data, const OpenOptions& options) {
  if (data.starts_with(kEmulated)) {
    SFS_ASSIGN(std::unique_ptr<Device> device,
               EmulatedDevice::open(std::string(path_of(data)), options));
    return device;
  }
  if (data.starts_with(kMmc)) {
    SFS_ASSIGN(std::unique_ptr<Device> device,
               MmcDevice::open(std::string(path_of(data)), options));
    return device;
  }
  if (data.starts_with(kNvme)) return open_emulated_nvme(data, options);
  if (options.real_time > 0)
    return Error{EINVAL, "real_time is for emulated SSDs (emu:PATH), and " + data + " is none"};
  if (PassthroughController::names(data)) {
    SFS_ASSIGN(std::unique_ptr<nvme::Controller> controller,
               PassthroughController::open(data, options));
    SFS_ASSIGN(std::unique_ptr<Device> device, NvmeDevice::open(std::move(controller), options));
    return device;
  }
  SFS_ASSIGN(std::unique_ptr<Device> device, FileDevice::open(data, options));
  return device;
}

Completion IoBatch::completion() {
  {
    const MutexLock lock(mutex_);
    ++in_flight_;
  }
  return [this](Result<void> result) {
    const MutexLock lock(mutex_);
    if (!result.ok() && first_error_.ok()) first_error_ = std::move(result);
    --in_flight_;
    done_.notify_all();  // under the lock: the waiter may destroy this batch right after
  };
}

void IoBatch::write(BlockNo first, ConstBytes bytes, WriteTag tag) {
  device_.write(first, bytes, tag, completion());
}

void IoBatch::read(BlockNo first, Bytes bytes) {
  device_.read(first, bytes, completion());
}

void IoBatch::submit() {
  uring::submit();
}

// Completes the requests on this thread's rings, which no other thread completes, and waits for the
// rest.
Result<void> IoBatch::wait() {
  while (busy() && uring::drive()) {
  }
  const MutexLock lock(mutex_);
  while (in_flight_ > 0) done_.wait(mutex_);
  return std::exchange(first_error_, {});
}

bool IoBatch::busy() {
  const MutexLock lock(mutex_);
  return in_flight_ > 0;
}

}  // namespace streamfs::blockdev
