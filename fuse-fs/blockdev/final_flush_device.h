// A device of which a flush that failed is final: the device may have dropped what it could not
// flush and forget that it did (a file tells it once), so a later success would prove nothing.
// Everyone who flushes it shares that knowledge; all else goes straight to the device beneath.
// Thread safety and crashes: see device.h.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"

namespace streamfs::blockdev {

class FinalFlushDevice final : public Device {
 public:
  explicit FinalFlushDevice(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}
  const DeviceInfo& info() const override { return inner_->info(); }
  Result<uint64_t> measure() override { return inner_->measure(); }
  void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) override {
    inner_->write(first, bytes, tag, std::move(done));
  }
  void read(BlockNo first, Bytes bytes, Completion done) override {
    inner_->read(first, bytes, std::move(done));
  }
  // Errors: that of the first flush that had failed when this one ended.
  Result<void> flush() override;
  Result<void> trim(BlockNo first, uint64_t count) override { return inner_->trim(first, count); }
  Result<void> release(PStreamId stream) override { return inner_->release(stream); }
  Result<DeviceStats> stats() override { return inner_->stats(); }
  Placement placement(PStreamId stream) const override { return inner_->placement(stream); }
  IdleCapabilities capabilities() const override { return inner_->capabilities(); }
  Pressure pressure() override { return inner_->pressure(); }
  Result<IdleWork> begin_idle(const IdleLimits& limits) override {
    return inner_->begin_idle(limits);
  }
  Result<void> end_idle() override { return inner_->end_idle(); }
  Result<IdleWork> prepare_poweroff(const IdleLimits& limits) override {
    SFS_TRY(flush());
    return inner_->prepare_poweroff(limits);
  }

 private:
  Result<void> failure() const;

  const std::unique_ptr<Device> inner_;
  mutable Mutex mutex_;  // leaf; not held over the flush
  Result<void> failed_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::blockdev
