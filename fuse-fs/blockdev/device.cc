#include "fuse-fs/blockdev/device.h"

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/emulated_device.h"
#include "fuse-fs/blockdev/file_device.h"

namespace streamfs::blockdev {

Result<std::unique_ptr<Device>> open_device(const std::string& data, const OpenOptions& options) {
  constexpr std::string_view kEmulated = "emu:";
  if (data.starts_with(kEmulated)) {
    SFS_ASSIGN(std::unique_ptr<Device> device,
               EmulatedDevice::open(data.substr(kEmulated.size()), options));
    return device;
  }
  if (options.real_time > 0)
    return Error{EINVAL, "real_time is for emulated SSDs (emu:PATH), and " + data + " is none"};
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

Result<void> IoBatch::wait() {
  const MutexLock lock(mutex_);
  while (in_flight_ > 0) done_.wait(mutex_);
  return std::exchange(first_error_, {});
}

}  // namespace streamfs::blockdev
