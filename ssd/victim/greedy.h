// Greedy: the closed block with the fewest valid pages; among equals the one longest so.
// Constant time: one list of blocks per number of valid pages.
// Thread safety: none; the FTL's lock. Crash: rebuilt from the block states.
#pragma once

#include "ssd/geometry.h"
#include "ssd/victim/block_lists.h"
#include "ssd/victim/view.h"

namespace streamfs::ssd {

class Greedy {
 public:
  static constexpr const char* kName = "greedy";

  explicit Greedy(const Geometry& geometry, const VictimOptions& /*options*/ = {})
      : lists_(geometry.pages_per_block + 1, geometry.blocks), fewest_(geometry.pages_per_block) {}

  void add(BlockIndex block, const BlockView& view) { append(block, view.valid); }
  void remove(BlockIndex block, uint32_t valid) { lists_.unlink(valid, block); }
  void moved(BlockIndex block, uint32_t from, uint32_t to) {
    lists_.unlink(from, block);
    append(block, to);
  }

  BlockIndex choose(uint64_t /*clock*/) {
    while (fewest_ + 1 < lists_.size() && lists_.head(fewest_) == kNoBlock) ++fewest_;
    return lists_.head(fewest_);
  }

 private:
  void append(BlockIndex block, uint32_t valid) {
    lists_.append(valid, block);
    if (valid < fewest_) fewest_ = valid;
  }

  BlockLists lists_;  // by valid pages
  uint32_t fewest_;   // no list below this one holds a block
};

}  // namespace streamfs::ssd
