// A device of which a flush that failed is final: the device may have dropped what it could not
// flush and forget that it did (a file tells it once), so a later success would prove nothing.
// Everyone who flushes it shares that knowledge; all else goes straight to the device beneath.
// Thread safety and crashes: see device.h.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"

namespace streamfs::blockdev {

class FinalFlushDevice final : public ForwardingDevice {
 public:
  explicit FinalFlushDevice(std::unique_ptr<Device> inner)
      : ForwardingDevice(*inner), inner_(std::move(inner)) {}
  // Errors: that of the first flush that had failed when this one ended.
  Result<void> flush() override;
  Result<IdleWork> prepare_poweroff(const IdleLimits& limits) override {
    SFS_TRY(flush());
    return beneath_.prepare_poweroff(limits);
  }

 private:
  Result<void> failure() const;

  const std::unique_ptr<Device> inner_;
  mutable Mutex mutex_;  // leaf; not held over the flush
  Result<void> failed_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::blockdev
