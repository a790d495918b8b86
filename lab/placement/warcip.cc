#include "lab/placement/warcip.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "lab/placement/policy.h"
#include "ssd/ftl/router.h"

namespace streamfs::lab {

// The centres start far apart: a block, ten, a hundred, ...
Warcip::Warcip(uint16_t clusters, uint32_t pages, uint32_t pages_per_block)
    : pages_per_block_(pages_per_block),
      clusters_(clusters),
      written_at_(pages),
      copied_at_(pages) {
  for (size_t i = 1; i < clusters_.size(); ++i)
    clusters_[i].centre = pages_per_block * std::pow(10.0, static_cast<double>(i - 1));
}

uint16_t Warcip::nearest(double interval) const {
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < clusters_.size(); ++i) {
    const double distance = std::fabs(clusters_[i].centre - interval);
    if (!clusters_[i].used || distance >= least) continue;
    least = distance;
    best = i;
  }
  return static_cast<uint16_t>(best);
}

ssd::FrontierId Warcip::for_write(const PageWrite& write, uint64_t clock) {
  double interval = 0;
  if (written_at_.known(write.page)) {
    const uint64_t last = written_at_.at(write.page);
    interval = static_cast<double>(clock - last);
    if (copied_at_.known(write.page))
      interval += static_cast<double>(copied_at_.since(write.page, clock) < clock - last
                                          ? copied_at_.at(write.page) - last
                                          : 0);
  }
  written_at_.set(write.page, clock);
  copied_at_.forget(write.page);
  const uint16_t chosen = nearest(interval);
  Cluster& cluster = clusters_[chosen];
  cluster.sum += interval;
  cluster.centre = cluster.sum / static_cast<double>(++cluster.pages);
  ++cluster.writes;
  if (cluster.pages == pages_per_block_) {
    cluster.pages = 0;
    cluster.sum = 0;
    if (++blocks_ == kPeriodBlocks) end_period();
  }
  return chosen;
}

void Warcip::end_period() {
  uint64_t all = 0;
  for (const Cluster& cluster : clusters_) all += cluster.writes;
  for (Cluster& cluster : clusters_)
    if (cluster.writes < pages_per_block_) cluster.used = false;
  const auto large = std::ranges::find_if(
      clusters_, [&](const Cluster& cluster) { return cluster.writes > all / 2; });
  const auto unused = std::ranges::find(clusters_, false, &Cluster::used);
  if (large != clusters_.end() && unused != clusters_.end()) split(*large, *unused);
  for (Cluster& cluster : clusters_) cluster.writes = 0;
  blocks_ = 0;
}

// The new centre lies half way to the next larger one, or after the last centre as far as the
// centre before it.
void Warcip::split(const Cluster& large, Cluster& unused) {
  double below = 0, above = std::numeric_limits<double>::infinity();
  for (const Cluster& other : clusters_) {
    if (!other.used) continue;
    if (other.centre < large.centre) below = std::max(below, other.centre);
    if (other.centre > large.centre) above = std::min(above, other.centre);
  }
  if (std::isinf(above)) above = 2 * large.centre - below;
  unused = Cluster{};
  unused.centre = (large.centre + above) / 2;
}

}  // namespace streamfs::lab
