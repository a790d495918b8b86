// A step of an idle device's work, and the limits that it derives from the host's bursts. The
// caller has the lock and the clock (ssd_background.cc, lab/figures/).
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"
#include "ssd/background.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

// Estimates the next burst. A burst is what the host writes between two idle times; the estimate is
// the largest of the recent ones.
class Bursts {
 public:
  // Call at the start of an idle time. `written`: all host writes so far, in the FTL's pages.
  void ended(uint64_t written, const Geometry& geometry) {
    const uint64_t pages = written - std::min(written, began_);
    began_ = written;
    if (pages == 0) return;
    const auto blocks = static_cast<double>(div_round_up(pages, geometry.pages_per_block));
    blocks_ = std::max(blocks, blocks_ * kForgotten);
  }
  // Returns `limits` with two changes. A free_blocks of 0 is replaced by the estimate. A lower
  // valid_limit is raised to 1 − (1 − s) / dearer, where `share` s is the share of valid pages in
  // the host's own victims. A freed page costs 1 / (1 − s) programs there, and `dearer` times as
  // much at this limit.
  IdleLimits by_experience(IdleLimits limits, const Geometry& geometry, double share) const {
    if (limits.free_blocks == 0 && blocks_ > 0)
      limits.free_blocks = blocks_for_burst(geometry, static_cast<uint64_t>(blocks_));
    if (share > 0)
      limits.valid_limit = std::max(limits.valid_limit, 1 - (1 - share) / limits.dearer);
    return limits;
  }

 private:
  static constexpr double kForgotten = 7.0 / 8;  // the estimate decays by this at each burst's end
  uint64_t began_ = UINT64_MAX;                  // `written` when the burst began
  double blocks_ = 0;                            // the estimate; 0: unknown
};

enum class IdleStep : uint8_t { kNothing, kCollected, kLevelled };

// Does one step of garbage collection, unless urgency is none; copies up to `most` pages. Returns
// false if nothing moved. `geometry` is in map units.
template <typename Ftl>
bool collect_step(Ftl& ftl, const Geometry& geometry, const IdleLimits& limits, Urgency urgency,
                  uint32_t most) {
  const auto limit = [&](double share) {
    return static_cast<uint32_t>(share * geometry.pages_per_block);
  };
  switch (urgency) {
    case Urgency::kNone:
      break;
    case Urgency::kLow:
      return ftl.collect_some(limit(limits.valid_limit), most);
    case Urgency::kHigh:
      return ftl.collect_some(limit((1 + limits.valid_limit) / 2), most);
    case Urgency::kCritical:
      return ftl.collect_some(geometry.pages_per_block, most);
  }
  return false;
}

// Does collect_step() or, if it has nothing to do and urgency is none or low, a step of wear
// levelling.
template <typename Ftl>
IdleStep idle_step(Ftl& ftl, const Geometry& geometry, const IdleLimits& limits, uint32_t most) {
  const Urgency urgency = urgency_of(geometry, ftl.free_blocks(), limits);
  if (collect_step(ftl, geometry, limits, urgency, most)) return IdleStep::kCollected;
  const bool calm = urgency == Urgency::kNone || urgency == Urgency::kLow;
  return calm && ftl.level_wear(limits.wear_spread, most) ? IdleStep::kLevelled
                                                          : IdleStep::kNothing;
}

}  // namespace streamfs::ssd
