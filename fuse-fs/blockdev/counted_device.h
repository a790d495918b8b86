// Counts the reads and writes that reach a device, by their size.
// Thread safety and crashes: see device.h.
#pragma once

#include <memory>
#include <utility>

#include "base/io_sizes.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"

namespace streamfs::blockdev {

class CountedDevice final : public ForwardingDevice {
 public:
  // Requires: nothing is sent to this once `sizes` is gone.
  CountedDevice(std::unique_ptr<Device> inner, IoSizes& sizes)
      : ForwardingDevice(*inner), inner_(std::move(inner)), sizes_(sizes) {}
  void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) override {
    sizes_.add(IoSizes::Kind::kWrite, bytes.size());
    beneath_.write(first, bytes, tag, std::move(done));
  }
  void read(BlockNo first, Bytes bytes, Completion done) override {
    sizes_.add(IoSizes::Kind::kRead, bytes.size());
    beneath_.read(first, bytes, std::move(done));
  }

 private:
  const std::unique_ptr<Device> inner_;
  IoSizes& sizes_;
};

}  // namespace streamfs::blockdev
