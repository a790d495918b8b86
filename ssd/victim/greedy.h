// Greedy: chooses the closed block with the fewest valid pages; among equals, the one that has had
// that number longest. It keeps a list of blocks for each number of valid pages, so that an update
// takes constant time.
// Thread safety: none; the FTL's lock. After a crash: rebuilt from the block states.
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
  uint32_t fewest_;   // all lists below this are empty
};

}  // namespace streamfs::ssd
