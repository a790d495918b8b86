// d-choices: draws d closed blocks at random, with replacement, and chooses the one with the fewest
// valid pages (Van Houdt, "A mean field model for a class of garbage collection algorithms in
// flash-based solid state drives", SIGMETRICS'13). d = 1 is random, large d is greedy.
// A choice takes constant time in the number of blocks; the seed repeats a run.
// Thread safety: none; the FTL's lock. After a crash: rebuilt from the block states.
#pragma once

#include <random>
#include <vector>

#include "ssd/geometry.h"
#include "ssd/victim/view.h"

namespace streamfs::ssd {

class DChoices {
 public:
  static constexpr const char* kName = "d-choices";

  explicit DChoices(const Geometry& geometry, const VictimOptions& options = {})
      : choices_(options.choices),
        random_(options.seed),
        valid_(geometry.blocks),
        place_(geometry.blocks) {
    closed_.reserve(geometry.blocks);
  }

  void add(BlockIndex block, const BlockView& view) {
    valid_[block] = view.valid;
    place_[block] = static_cast<uint32_t>(closed_.size());
    closed_.push_back(block);
  }
  void remove(BlockIndex block, uint32_t /*valid*/) {
    const BlockIndex last = closed_.back();
    closed_[place_[block]] = last;
    place_[last] = place_[block];
    closed_.pop_back();
  }
  void moved(BlockIndex block, uint32_t /*from*/, uint32_t to) { valid_[block] = to; }

  BlockIndex choose(uint64_t /*clock*/) {
    if (closed_.empty()) return kNoBlock;
    BlockIndex best = draw();
    for (uint32_t i = 1; i < choices_; ++i)
      if (const BlockIndex other = draw(); valid_[other] < valid_[best]) best = other;
    return best;
  }

 private:
  // Multiplies instead of dividing; the bias of 2^-32 per block does not matter.
  BlockIndex draw() { return closed_[(random_() & UINT32_MAX) * closed_.size() >> 32]; }

  uint32_t choices_;
  std::mt19937_64 random_;
  std::vector<BlockIndex> closed_;
  std::vector<uint32_t> valid_, place_;  // by block; place_: index in closed_
};

}  // namespace streamfs::ssd
