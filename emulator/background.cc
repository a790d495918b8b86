#include "emulator/background.h"

#include <algorithm>
#include <cstdint>

#include "base/types.h"
#include "emulator/geometry.h"

namespace streamfs::emulator {

uint32_t wanted_free_blocks(const Geometry& geometry, const IdleLimits& limits) {
  if (limits.free_blocks != 0) return limits.free_blocks;
  const auto data =
      static_cast<uint32_t>(div_round_up(geometry.user_pages, geometry.pages_per_block));
  return std::max<uint32_t>((geometry.blocks - data) / 4, geometry.low_water + 2u);
}

Urgency urgency_of(const Geometry& geometry, uint64_t free_blocks, const IdleLimits& limits) {
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

}  // namespace streamfs::emulator
