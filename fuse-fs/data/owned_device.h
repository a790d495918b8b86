// Keeps a filesystem away from a DATA that it has lost. After Health::lose(), reads, writes,
// flushes and trims of every thread fail with EIO and do not reach the device. A request that began
// before may still reach it.
// Thread safety and crashes: see device.h.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"
#include "fuse-fs/data/health.h"

namespace streamfs::data {

class OwnedDevice final : public blockdev::ForwardingDevice {
 public:
  // Requires: `health` outlives this.
  OwnedDevice(std::unique_ptr<blockdev::Device> inner, const Health& health)
      : ForwardingDevice(*inner), inner_(std::move(inner)), health_(health) {}
  void write(BlockNo first, ConstBytes bytes, blockdev::WriteTag tag,
             blockdev::Completion done) override {
    about_to_wait();
    if (const auto ours = health_.readable(); !ours.ok()) return done(ours);
    beneath_.write(first, bytes, tag, std::move(done));
  }
  void read(BlockNo first, Bytes bytes, blockdev::Completion done) override {
    about_to_wait();
    if (const auto ours = health_.readable(); !ours.ok()) return done(ours);
    beneath_.read(first, bytes, std::move(done));
  }
  Result<void> flush() override {
    about_to_wait();
    SFS_TRY(health_.readable());
    return beneath_.flush();
  }
  Result<void> trim(BlockNo first, uint64_t count) override {
    about_to_wait();
    SFS_TRY(health_.readable());
    return beneath_.trim(first, count);
  }

 private:
  const std::unique_ptr<blockdev::Device> inner_;
  const Health& health_;
};

}  // namespace streamfs::data
