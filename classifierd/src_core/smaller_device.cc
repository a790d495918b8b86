#include "classifierd/src_core/smaller_device.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/types.h"
#include "ssd/geometry.h"

namespace streamfs::classifier {

namespace {

constexpr uint32_t kBlockPagesLeast = 64;

// Blocks being filled at once, by the host and by copies.
uint32_t open_blocks(const ssd::Geometry& geometry) {
  if (geometry.gc_mode == ssd::GcMode::kOwnFrontier) return geometry.frontiers();
  return geometry.streams + (geometry.gc_mode == ssd::GcMode::kShared ? 1U : 0U);
}

}  // namespace

ssd::Geometry smaller(const WholeDevice& whole, uint64_t stride, uint64_t pages) {
  ssd::Geometry out;
  out.user_pages = static_cast<uint32_t>(pages);
  out.pages_per_block = std::max(static_cast<uint32_t>(whole.block_pages / stride),
                                 std::min(whole.block_pages, kBlockPagesLeast));
  out.streams = static_cast<uint16_t>(whole.streams);
  out.gc_mode = whole.gc_mode;
  out.victim = whole.victim;
  // Blocks that did not become smaller by as much must not eat the spare by being kept free, or by
  // being open: half full as a rule, and of several streams half are taken to be in use.
  const double open = open_blocks(out) * (whole.streams == 1 ? 0.5 : 0.25);
  const double shrunk = static_cast<double>(whole.block_pages) / static_cast<double>(stride);
  const double physical =
      out.user_pages * (1 + whole.spare) + (out.low_water + open) * (out.pages_per_block - shrunk);
  const uint64_t needed =
      div_round_up(pages, out.pages_per_block) + out.low_water + open_blocks(out) + 1;
  out.blocks = std::max(static_cast<uint32_t>(needed),
                        static_cast<uint32_t>(std::lround(physical / out.pages_per_block)));
  return out;
}

}  // namespace streamfs::classifier
