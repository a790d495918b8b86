// A device that forwards every call to the device beneath. A wrapper derives from this class and
// overrides only the calls that it changes.
// Thread safety and crashes: see device.h.
#pragma once

#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"

namespace streamfs::blockdev {

class ForwardingDevice : public Device {
 public:
  // Requires: `beneath` outlives this.
  explicit ForwardingDevice(Device& beneath) : beneath_(beneath) {}
  // Not copyable: ForwardingDevice(other) would otherwise copy a wrapper instead of wrapping it.
  ForwardingDevice(const ForwardingDevice&) = delete;
  ForwardingDevice& operator=(const ForwardingDevice&) = delete;
  const DeviceInfo& info() const override { return beneath_.info(); }
  Result<uint64_t> measure() override { return beneath_.measure(); }
  Result<void> check_same() override { return beneath_.check_same(); }
  void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) override {
    beneath_.write(first, bytes, tag, std::move(done));
  }
  void read(BlockNo first, Bytes bytes, Completion done) override {
    beneath_.read(first, bytes, std::move(done));
  }
  Result<void> flush() override { return beneath_.flush(); }
  Result<void> trim(BlockNo first, uint64_t count) override { return beneath_.trim(first, count); }
  Result<DeviceStats> stats() override { return beneath_.stats(); }
  Placement placement(PStreamId stream) const override { return beneath_.placement(stream); }
  Result<void> release(PStreamId stream) override { return beneath_.release(stream); }
  IdleCapabilities capabilities() const override { return beneath_.capabilities(); }
  Pressure pressure() override { return beneath_.pressure(); }
  Result<IdleWork> begin_idle(const IdleLimits& limits) override {
    return beneath_.begin_idle(limits);
  }
  Result<void> end_idle() override { return beneath_.end_idle(); }
  Result<IdleWork> prepare_poweroff(const IdleLimits& limits) override {
    return beneath_.prepare_poweroff(limits);
  }

 protected:
  Device& beneath_;
};

}  // namespace streamfs::blockdev
