// The emulated SSD (ssd/ssd.h) as the data device. Placements (1, s) and (2, s), a Streams id and
// an FDP placement identifier, both select its stream s. An image with the vStream-FTL selects its
// stream by the vStream of the write alone.
//
// Reads and writes run in the caller's thread, and completions run before the call returns. The
// image is in the page cache, so a ring would only add a thread switch.
// In real time (OpenOptions) the caller's thread sleeps without a lock until the flash would have
// answered. A thread's requests are thus answered one after the other.
// Thread safety and crashes: see device.h and ssd.h.
#pragma once

#include <memory>
#include <string>

#include "fuse-fs/blockdev/device.h"
#include "ssd/ssd.h"

namespace streamfs::blockdev {

// Returns the options of the Ssd for those of a device.
ssd::SsdOptions ssd_options(const OpenOptions& options);

class EmulatedDevice final : public Device {
 public:
  // Errors: see open_device.
  static Result<std::unique_ptr<EmulatedDevice>> open(const std::string& path,
                                                      const OpenOptions& options);

  const DeviceInfo& info() const override { return info_; }
  void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) override;
  void read(BlockNo first, Bytes bytes, Completion done) override;
  Result<void> flush() override;
  Result<void> trim(BlockNo first, uint64_t count) override {
    return ssd_->trim(first.value, count);
  }
  Result<void> release(PStreamId stream) override { return ssd_->release(stream); }
  Result<DeviceStats> stats() override;
  Placement placement(PStreamId stream) const override;
  ssd::Ssd& ssd() { return *ssd_; }

  IdleCapabilities capabilities() const override;
  Pressure pressure() override;
  Result<IdleWork> begin_idle(const IdleLimits& limits) override;
  Result<IdleWork> prepare_poweroff(const IdleLimits& limits) override;

 private:
  EmulatedDevice(std::unique_ptr<ssd::Ssd> ssd, const std::string& path);

  std::unique_ptr<ssd::Ssd> ssd_;
  DeviceInfo info_;
};

}  // namespace streamfs::blockdev
