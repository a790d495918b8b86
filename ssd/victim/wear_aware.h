// Wear-aware: cost-benefit that also spares worn blocks. It chooses the closed block with the
// largest (1 − u) / u · age / (erases + 1): "cost, age, times" (Chiang and Chang, "Cleaning
// policies in mobile computers using flash memory", J. Systems and Software 48, 1999). A choice
// looks at every block, about a nanosecond each.
// Thread safety: none; the FTL's lock. After a crash: rebuilt from the block states.
#pragma once

#include <algorithm>
#include <vector>

#include "ssd/geometry.h"
#include "ssd/victim/view.h"

namespace streamfs::ssd {

class WearAware {
 public:
  static constexpr const char* kName = "wear-aware";

  explicit WearAware(const Geometry& geometry, const VictimOptions& /*options*/ = {})
      : pages_(geometry.pages_per_block), blocks_(geometry.blocks) {}

  void add(BlockIndex block, const BlockView& view) {
    blocks_[block] = {static_cast<double>(view.opened_at), 1.0 / (view.erases + 1.0), view.valid};
  }
  void remove(BlockIndex block, uint32_t /*valid*/) { blocks_[block].per_erase = kNotClosed; }
  void moved(BlockIndex block, uint32_t /*from*/, uint32_t to) { blocks_[block].valid = to; }

  BlockIndex choose(uint64_t clock) const {
    BlockIndex best = kNoBlock;
    double best_score = -1;
    for (BlockIndex block = 0; block < blocks_.size(); ++block) {
      const double score = score_of(blocks_[block], static_cast<double>(clock) + 1);
      if (score <= best_score) continue;
      best_score = score;
      best = block;
    }
    return best;
  }

 private:
  static constexpr double kNotClosed = -1e9;
  struct Candidate {
    double opened_at = 0;
    double per_erase = kNotClosed;
    uint32_t valid = 0;
  };

  // A block without a valid page has a small cost instead of 0, so that wear still ranks such
  // blocks.
  double score_of(const Candidate& block, double now) const {
    if (block.per_erase == kNotClosed) return -1;
    const double cost = std::max(static_cast<double>(block.valid), 1e-6);
    return (pages_ - block.valid) / cost * (now - block.opened_at) * block.per_erase;
  }

  double pages_;
  std::vector<Candidate> blocks_;
};

}  // namespace streamfs::ssd
