// Emmc places as an eMMC with streams (Vishwakarma 2019; ssd/ftl/emmc/interface.h). The trace's
// pStreams 0, 1, … are its stream ids 1, 2, …, each with one active block. Copies of all streams
// share one block. While more than 90 % of the device is live, host writes use the default stream
// only. The policy runs in the device only. Memory: 1 bit a page.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/placement/policy.h"
#include "ssd/ftl/emmc/interface.h"

namespace streamfs::lab {

class Emmc final : public PlacementPolicy {
 public:
  explicit Emmc(uint32_t footprint_pages) : switch_(footprint_pages), live_(footprint_pages) {}

  ssd::FlashWatcher* watch(const ssd::Geometry& geometry) override {
    switch_ = ssd::emmc::StreamSwitch(geometry.user_pages);
    return nullptr;
  }
  uint16_t classes() const override { return ssd::emmc::kStreams + 2; }
  uint16_t host_classes() const override { return ssd::emmc::kStreams + 1; }
  ssd::FrontierId for_write(const PageWrite& write, uint64_t) override {
    live_pages_ += !live_[write.page];
    live_[write.page] = true;
    const uint16_t id = write.prefill ? 0 : write.pstream + 1;
    return switch_.frontier(static_cast<uint8_t>(id), live_pages_);
  }
  ssd::FrontierId for_copy(ssd::Lpn, ssd::FrontierId, uint64_t) override {
    return ssd::emmc::kStreams + 1;
  }
  void trimmed(ssd::Lpn page, uint64_t) override {
    live_pages_ -= live_[page];
    live_[page] = false;
  }

 private:
  ssd::emmc::StreamSwitch switch_;
  std::vector<bool> live_;
  uint64_t live_pages_ = 0;
};

}  // namespace streamfs::lab
