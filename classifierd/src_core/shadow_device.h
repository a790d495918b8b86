// A shadow device: the emulated SSD's FTL over media without data. A write goes to the frontier of
// its class or stream, a copy to the one that the geometry's GcMode names.
// Thread safety: none.
#pragma once

#include <cstdint>

#include "ssd/counters.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/media/null_media.h"
#include "ssd/victim/device_victim.h"

namespace streamfs::classifier {

class ShadowDevice {
 public:
  explicit ShadowDevice(const ssd::Geometry& geometry)
      : victim_(geometry),
        router_(geometry),
        ftl_(geometry, media_, victim_, router_, counters_, live_) {}
  // Returns false, and writes nothing, if the device is full.
  bool write(uint32_t page, ssd::FrontierId frontier) {
    return ftl_.write(page, 1, frontier, 0, nullptr) == 0;
  }
  void trim(uint32_t page) { ftl_.trim(page); }
  void seal(ssd::FrontierId frontier) { ftl_.seal(frontier); }
  void go_on_from(const ShadowDevice& other) { ftl_.go_on_from(other.ftl_); }
  // Makes garbage collection work as if the device had so many blocks fewer.
  void withhold(uint32_t blocks) { ftl_.withhold(blocks); }
  uint64_t peak_live() const { return live_.peak_live_pages; }
  uint64_t copied() const { return counters_.gc_pages; }

 private:
  ssd::Counters counters_;
  ssd::LiveCounts live_;
  ssd::NullMedia media_;
  ssd::DeviceVictim victim_;
  ssd::StreamRouter router_;
  ssd::PageMap<ssd::NullMedia, ssd::DeviceVictim, ssd::StreamRouter> ftl_;
};

}  // namespace streamfs::classifier
