// Plans a small device that imitates a whole device, which is `stride` times as large.
//
// Its erase blocks are smaller by the same factor, so that a block fills as fast as one of the
// whole device. They never fall below 64 pages (or the whole device's block): in smaller blocks,
// greedy collection would find emptier victims than the whole device does.
// Thread safety: pure.
#pragma once

#include <cstdint>

#include "ssd/geometry.h"

namespace streamfs::classifier {

struct WholeDevice {
  uint64_t pages = 0;          // the capacity that the host sees
  double spare = 0.07;         // physical pages ÷ pages − 1
  uint32_t block_pages = 256;  // erased together
  ssd::GcMode gc_mode = ssd::GcMode::kSameStream;
  ssd::VictimKind victim = ssd::VictimKind::kGreedy;
  uint32_t streams = 1;
};

// Returns a device of `pages` user pages with the whole device's share of spare, and two additions.
// If its blocks stopped at 64 pages, open and reserved blocks take more of the spare than on the
// whole device; that difference is added. It also has the blocks that collection needs at least.
ssd::Geometry smaller(const WholeDevice& whole, uint64_t stride, uint64_t pages);

}  // namespace streamfs::classifier
