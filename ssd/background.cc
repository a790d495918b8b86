#include "ssd/background.h"

#include <algorithm>
#include <cstdint>

#include "base/types.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

namespace {

uint32_t spare_blocks(const Geometry& geometry) {
  return geometry.blocks -
         static_cast<uint32_t>(div_round_up(geometry.user_pages, geometry.pages_per_block));
}

uint32_t least_wanted(const Geometry& geometry) {
  return geometry.low_water + 2u;
}

}  // namespace

uint32_t wanted_free_blocks(const Geometry& geometry, const IdleLimits& limits) {
  if (limits.free_blocks != 0) return limits.free_blocks;
  return std::max(spare_blocks(geometry) / 4, least_wanted(geometry));
}

uint32_t blocks_for_burst(const Geometry& geometry, uint64_t burst_blocks) {
  const uint64_t least = least_wanted(geometry);
  const auto wanted = std::min<uint64_t>(least + burst_blocks, spare_blocks(geometry) / 2);
  return static_cast<uint32_t>(std::max(wanted, least));
}

Urgency urgency_of(const Geometry& geometry, uint64_t free_blocks, const IdleLimits& limits) {
  if (geometry.ftl == FtlKind::kLogBlock) return Urgency::kNone;  // does nothing in idle time
  const uint64_t wanted = wanted_free_blocks(geometry, limits);
  if (free_blocks >= wanted) return Urgency::kNone;
  if (free_blocks <= geometry.low_water + 1u) return Urgency::kCritical;
  return 2 * free_blocks >= wanted ? Urgency::kLow : Urgency::kHigh;
}

const char* name_of(Urgency urgency) {
  switch (urgency) {
    case Urgency::kNone:
      return "none";
    case Urgency::kLow:
      return "low";
    case Urgency::kHigh:
      return "high";
    case Urgency::kCritical:
      return "critical";
  }
  return "unknown";
}

}  // namespace streamfs::ssd
