// A device of which only the placement of pages is kept: the emulator's FTL over no media. What a
// shadow writes goes to a frontier for each class or stream; copies go where the geometry says.
// Thread safety: none.
#pragma once

#include <cstdint>

#include "emulator/counters.h"
#include "emulator/ftl/page_map.h"
#include "emulator/ftl/router.h"
#include "emulator/geometry.h"
#include "emulator/media/null_media.h"
#include "emulator/policy/victim/greedy.h"

namespace streamfs::classifier {

class ShadowDevice {
 public:
  explicit ShadowDevice(const emulator::Geometry& geometry)
      : victim_(geometry),
        router_(geometry),
        ftl_(geometry, media_, victim_, router_, counters_, live_) {}
  // False: it is full.
  bool write(uint32_t page, emulator::FrontierId frontier) {
    return ftl_.write(page, 1, frontier, 0, nullptr) == 0;
  }
  void trim(uint32_t page) { ftl_.trim(page); }
  void seal(emulator::FrontierId frontier) { ftl_.seal(frontier); }
  void go_on_from(const ShadowDevice& other) { ftl_.go_on_from(other.ftl_); }
  // It collects garbage as one with so many blocks fewer.
  void withhold(uint32_t blocks) { ftl_.withhold(blocks); }
  uint64_t peak_live() const { return live_.peak_live_pages; }
  uint64_t copied() const { return counters_.gc_pages; }

 private:
  emulator::Counters counters_;
  emulator::LiveCounts live_;
  emulator::NullMedia media_;
  emulator::Greedy victim_;
  emulator::StreamRouter router_;
  emulator::PageMap<emulator::NullMedia, emulator::Greedy, emulator::StreamRouter> ftl_;
};

}  // namespace streamfs::classifier
