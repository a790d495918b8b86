// The geometry of a device that imitates one `stride` times as large.
//
// Its blocks are as much smaller, so that one fills in the time it takes on the whole device, but
// for a least: greedy collection of small blocks finds emptier ones than the whole device would.
// Thread safety: pure.
#pragma once

#include <cstdint>

#include "ssd/geometry.h"

namespace streamfs::classifier {

struct WholeDevice {
  uint64_t pages = 0;          // limit of those that hold data
  double spare = 0.07;         // all there is: physical ÷ pages − 1
  uint32_t block_pages = 256;  // erased together
  ssd::GcMode gc_mode = ssd::GcMode::kSameStream;
  ssd::VictimKind victim = ssd::VictimKind::kGreedy;
  uint32_t streams = 1;
};

// Without more spare than the whole device has, but for the blocks without which none could collect
// its garbage. `pages` of it are followed: user_pages.
ssd::Geometry smaller(const WholeDevice& whole, uint64_t stride, uint64_t pages);

}  // namespace streamfs::classifier
