// WARCIP (Yang, Pei and Yang, SYSTOR'19) clusters pages by their rewrite interval, on line. A host
// write goes to the cluster whose centre is nearest to the interval since the page's last write.
// The centre is the running mean of the intervals of the cluster's writes, begun anew with each
// block's worth of them. After every 128 such blocks, a cluster with less than a block of writes
// becomes unused, and one with more than half of all writes is split: an unused one takes a centre
// above it. If the page was copied since its last write, its age at the last copy is added to its
// interval. Copies have a class of their own. A first write has interval 0, as in the evaluation of
// SepBIT (FAST'22).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lab/placement/page_times.h"
#include "lab/placement/policy.h"

namespace streamfs::lab {

class Warcip final : public PlacementPolicy {
 public:
  Warcip(uint16_t clusters, uint32_t pages, uint32_t pages_per_block);

  uint16_t host_classes() const override { return static_cast<uint16_t>(clusters_.size()); }
  uint16_t classes() const override { return static_cast<uint16_t>(clusters_.size() + 1); }
  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override;
  ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId, uint64_t clock) override {
    copied_at_.set(page, clock);
    return host_classes();
  }

 private:
  static constexpr uint32_t kPeriodBlocks = 128;
  struct Cluster {
    double centre = 0;
    double sum = 0;       // of the intervals since the mean began anew
    uint64_t pages = 0;   // the number of these intervals
    uint64_t writes = 0;  // of this period of kPeriodBlocks
    bool used = true;
  };

  uint16_t nearest(double interval) const;
  void end_period();
  void split(const Cluster& large, Cluster& unused);

  const uint32_t pages_per_block_;
  std::vector<Cluster> clusters_;
  PageTimes written_at_, copied_at_;
  uint32_t blocks_ = 0;  // filled in this period
};

}  // namespace streamfs::lab
