// Greedy: the closed block with the fewest valid pages; among equals the one longest so.
// Constant time: one list of blocks per number of valid pages.
// Thread safety: none; the FTL's lock. Crash: rebuilt from the block states.
#pragma once

#include <vector>

#include "emulator/geometry.h"
#include "emulator/policy/victim/view.h"

namespace streamfs::emulator {

class Greedy {
 public:
  explicit Greedy(const Geometry& geometry)
      : lists_(geometry.pages_per_block + 1),
        links_(geometry.blocks),
        fewest_(geometry.pages_per_block) {}

  void add(BlockIndex block, const BlockView& view) { append(block, view.valid); }
  void remove(BlockIndex block, uint32_t valid) { unlink(block, valid); }
  void moved(BlockIndex block, uint32_t from, uint32_t to) {
    unlink(block, from);
    append(block, to);
  }

  BlockIndex choose(uint64_t /*clock*/) {
    while (fewest_ + 1 < lists_.size() && lists_[fewest_].head == kNoBlock) ++fewest_;
    return lists_[fewest_].head;
  }

 private:
  struct List {
    BlockIndex head = kNoBlock, tail = kNoBlock;
  };
  struct Link {
    BlockIndex previous = kNoBlock, next = kNoBlock;
  };

  void append(BlockIndex block, uint32_t valid) {
    List& list = lists_[valid];
    links_[block] = {list.tail, kNoBlock};
    (list.tail == kNoBlock ? list.head : links_[list.tail].next) = block;
    list.tail = block;
    if (valid < fewest_) fewest_ = valid;
  }

  void unlink(BlockIndex block, uint32_t valid) {
    List& list = lists_[valid];
    const Link link = links_[block];
    (link.previous == kNoBlock ? list.head : links_[link.previous].next) = link.next;
    (link.next == kNoBlock ? list.tail : links_[link.next].previous) = link.previous;
  }

  std::vector<List> lists_;  // by valid pages
  std::vector<Link> links_;  // by block
  uint32_t fewest_;          // no list below this one holds a block
};

}  // namespace streamfs::emulator
