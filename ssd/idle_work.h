// What an idle device does, step by step, and how far experience makes it go; without a lock or a
// clock: whoever drives it has those (ssd_background.cc, figures/).
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"
#include "ssd/background.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

// What the host writes between two idle times is a burst: the largest of the last ones is what it
// may want to write again before the next.
class Bursts {
 public:
  // At the start of an idle time; `written`: all that the host ever wrote, in the FTL's pages.
  void ended(uint64_t written, const Geometry& geometry) {
    const uint64_t pages = written - std::min(written, began_);
    began_ = written;
    if (pages == 0) return;
    const auto blocks = static_cast<double>(div_round_up(pages, geometry.pages_per_block));
    blocks_ = std::max(blocks, blocks_ * kForgotten);
  }
  // `share`: of valid pages in the host's own victims; what is not valid a page of them gives back.
  IdleLimits by_experience(IdleLimits limits, const Geometry& geometry, double share) const {
    if (limits.free_blocks == 0 && blocks_ > 0)
      limits.free_blocks = blocks_for_burst(geometry, static_cast<uint64_t>(blocks_));
    if (share > 0)
      limits.valid_limit = std::max(limits.valid_limit, 1 - (1 - share) / limits.dearer);
    return limits;
  }

 private:
  static constexpr double kForgotten = 7.0 / 8;  // of the largest burst, at the end of each
  uint64_t began_ = UINT64_MAX;
  double blocks_ = 0;  // of late; 0: not known
};

enum class IdleStep : uint8_t { kNothing, kCollected, kLevelled };

// One step of garbage collection or, where that has nothing to do, of wear levelling; `geometry` as
// the FTL sees it.
template <typename Ftl>
IdleStep idle_step(Ftl& ftl, const Geometry& geometry, const IdleLimits& limits, uint32_t most) {
  const Urgency urgency = urgency_of(geometry, ftl.free_blocks(), limits);
  const auto limit = [&](double share) {
    return static_cast<uint32_t>(share * geometry.pages_per_block);
  };
  bool collected = false;
  switch (urgency) {
    case Urgency::kNone:
      break;
    case Urgency::kLow:
      collected = ftl.collect_some(limit(limits.valid_limit), most);
      break;
    case Urgency::kHigh:
      collected = ftl.collect_some(limit((1 + limits.valid_limit) / 2), most);
      break;
    case Urgency::kCritical:
      collected = ftl.collect_some(geometry.pages_per_block, most);
      break;
  }
  if (collected) return IdleStep::kCollected;
  const bool calm = urgency == Urgency::kNone || urgency == Urgency::kLow;
  return calm && ftl.level_wear(limits.wear_spread, most) ? IdleStep::kLevelled
                                                          : IdleStep::kNothing;
}

}  // namespace streamfs::ssd
