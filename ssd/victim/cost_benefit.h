// Cost-benefit: chooses the closed block with the largest (1 − u) / u · age, where u is the share
// of valid pages and age the host pages written since the block was opened (Rosenblum and
// Ousterhout, SOSP'91; with this cost Kawaguchi, Nishioka and Motoda, USENIX'95). This is
// CostBenefitAge. CostBenefit has √age in place of age, as SepBIT has (Wang et al., FAST'22). Among
// blocks with equally many valid pages the oldest is best. A choice therefore looks at one block
// for each number of valid pages, whatever the number of blocks.
// Thread safety: none; the FTL's lock. After a crash: rebuilt from the block states.
#pragma once

#include <cmath>

#include "ssd/geometry.h"
#include "ssd/victim/oldest_by_valid.h"
#include "ssd/victim/view.h"

namespace streamfs::ssd {

template <bool kSquareRoot>
class CostBenefitBy {
 public:
  static constexpr const char* kName = kSquareRoot ? "cost-benefit" : "cost-benefit-age";

  explicit CostBenefitBy(const Geometry& geometry, const VictimOptions& /*options*/ = {})
      : closed_(geometry.pages_per_block, geometry.blocks) {}

  void add(BlockIndex block, const BlockView& view) { closed_.add(block, view); }
  void remove(BlockIndex block, uint32_t valid) { closed_.remove(block, valid); }
  void moved(BlockIndex block, uint32_t from, uint32_t to) { closed_.moved(block, from, to); }

  BlockIndex choose(uint64_t clock) {
    if (const auto* dead = closed_.oldest(0)) return dead->block;
    BlockIndex best = kNoBlock;
    double best_score = -1;
    const double pages = closed_.lists() - 1;
    for (uint32_t valid = 1; valid < closed_.lists(); ++valid) {
      const auto* oldest = closed_.oldest(valid);
      if (oldest == nullptr) continue;
      const auto age = static_cast<double>(clock - oldest->opened_at + 1);
      const double score = (pages - valid) / valid * (kSquareRoot ? std::sqrt(age) : age);
      if (score <= best_score) continue;
      best_score = score;
      best = oldest->block;
    }
    return best;
  }

 private:
  OldestByValid closed_;
};

using CostBenefit = CostBenefitBy<true>;
using CostBenefitAge = CostBenefitBy<false>;

}  // namespace streamfs::ssd
