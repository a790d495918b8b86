// Cost-benefit: the closed block with the largest (1 − u) / u · √age, u the share of valid pages,
// age in host pages since the block was opened (after Rosenblum and Ousterhout, SOSP'91).
// Looks at every closed block: for simulations, not for large devices.
// Thread safety: none; the FTL's lock. Crash: rebuilt from the block states.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "emulator/geometry.h"
#include "emulator/policy/victim/view.h"

namespace streamfs::emulator {

class CostBenefit {
 public:
  explicit CostBenefit(const Geometry& geometry)
      : pages_(geometry.pages_per_block), closed_(geometry.blocks) {}

  void add(BlockIndex block, const BlockView& view) {
    closed_[block] = {view.valid, true, view.opened_at};
  }
  void remove(BlockIndex block, uint32_t /*valid*/) { closed_[block].closed = false; }
  void moved(BlockIndex block, uint32_t /*from*/, uint32_t to) { closed_[block].valid = to; }

  BlockIndex choose(uint64_t clock) const {
    BlockIndex best = kNoBlock;
    double best_score = -1;
    for (BlockIndex block = 0; block < closed_.size(); ++block) {
      if (!closed_[block].closed) continue;
      const double score = score_of(closed_[block], clock);
      if (score > best_score) {
        best_score = score;
        best = block;
      }
    }
    return best;
  }

 private:
  struct View {
    uint32_t valid = 0;
    bool closed = false;
    uint64_t opened_at = 0;
  };

  double score_of(const View& view, uint64_t clock) const {
    if (view.valid == 0) return std::numeric_limits<double>::max();
    const double used = static_cast<double>(view.valid) / pages_;
    return (1 - used) / used * std::sqrt(static_cast<double>(clock - view.opened_at + 1));
  }

  double pages_;
  std::vector<View> closed_;  // by block
};

}  // namespace streamfs::emulator
