#include "fuse-fs/placement/time_scale.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace streamfs::placement {
namespace {
constexpr size_t kPointsMax = 1024;
}

void TimeScale::sample(uint64_t clock_pages, uint64_t now_ms) {
  if (!points_.empty() && points_.back().clock == clock_pages) return;
  points_.push_back({clock_pages, now_ms});
  if (points_.size() < kPointsMax) return;
  size_t kept = 0;
  for (size_t i = 0; i < points_.size(); ++i) {  // drops every other point of the older half
    if (i < points_.size() / 2 && i % 2 == 1) continue;
    points_[kept++] = points_[i];
  }
  points_.resize(kept);
}

uint64_t TimeScale::duration_ms(double pages) const {
  if (points_.size() < 2) return 0;
  const Point& last = points_.back();
  const double target = static_cast<double>(last.clock) - pages;
  const auto after =
      std::upper_bound(points_.begin(), points_.end() - 1, target,
                       [](double at, const Point& p) { return at < static_cast<double>(p.clock); });
  const Point& from = after == points_.begin() ? *after : *(after - 1);
  const double clocks = static_cast<double>(last.clock - from.clock);
  const double ms = static_cast<double>(last.ms - from.ms);
  return clocks <= 0 ? 0 : static_cast<uint64_t>(ms * pages / clocks);
}

}  // namespace streamfs::placement
