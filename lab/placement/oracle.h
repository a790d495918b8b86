// Oracle knows when each page will die. It places a copy by the time that the page has left. As
// oracle-host it only tags host writes; see host_only.h.
//
// Edges between classes, in host pages still to live:
//   log2       one block, two, four, ...
//   quantile   equal shares of the written volume
//   threshold  C/2^9, C/2^7, C/2^5, C/2^3, C/2^2, C/2, where C is the peak of live pages; with at
//              most 4 classes C/2^7, C/2^3, C/2
// None of them alone is a bound; gaps are measured against the best of the three.
#pragma once

#include <vector>

#include "lab/placement/policy.h"

namespace streamfs::lab {

class Oracle final : public PlacementPolicy {
 public:
  Oracle(uint16_t streams, const PolicyOptions& options, const WorkloadFacts& facts);

  uint16_t classes() const override { return static_cast<uint16_t>(edges_.size() + 1); }
  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override {
    death_[write.page] = write.death;
    return class_of(write.page, clock);
  }
  ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId, uint64_t clock) override {
    return class_of(page, clock);
  }

 private:
  ssd::FrontierId class_of(ssd::Lpn page, uint64_t clock) const;

  std::vector<uint64_t> edges_;
  std::vector<uint64_t> death_;  // by page: of its current content
};

}  // namespace streamfs::lab
