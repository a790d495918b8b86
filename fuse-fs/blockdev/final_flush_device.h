// A device on which a failed flush is final. The device beneath may have dropped the data that it
// could not flush, and may report that only once (a file does), so a later flush that succeeds
// proves nothing. After the first failed flush every flush, write, trim, release, begin_idle() and
// prepare_poweroff() fails with that error. Reads and end_idle() still work.
// Thread safety and crashes: see device.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"

namespace streamfs::blockdev {

class FinalFlushDevice final : public ForwardingDevice {
 public:
  explicit FinalFlushDevice(std::unique_ptr<Device> inner)
      : ForwardingDevice(*inner), inner_(std::move(inner)) {}
  void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) override;
  // Flushes the device beneath. The device may report an error to any one of several flushes that
  // overlap, so after its own flush a caller waits for all flushes then in flight, or for the first
  // failure. Errors: that of the first flush that failed.
  Result<void> flush() override;
  Result<void> trim(BlockNo first, uint64_t count) override;
  Result<void> release(PStreamId stream) override;
  Result<IdleWork> begin_idle(const IdleLimits& limits) override;
  Result<IdleWork> prepare_poweroff(const IdleLimits& limits) override;  // flushes first

 private:
  Result<void> failure() const;

  const std::unique_ptr<Device> inner_;
  mutable Mutex mutex_;  // leaf; not held over the flush
  CondVar ended_;
  Result<void> failed_ SFS_GUARDED_BY(mutex_);
  std::atomic<bool> has_failed_{false};
  uint64_t last_begun_ SFS_GUARDED_BY(mutex_) = 0;
  std::set<uint64_t> running_ SFS_GUARDED_BY(mutex_);  // numbers of the flushes in flight
};

}  // namespace streamfs::blockdev
