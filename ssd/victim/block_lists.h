// Doubly linked lists of blocks; a block is on at most one. Every operation takes constant time.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <vector>

#include "ssd/geometry.h"

namespace streamfs::ssd {

class BlockLists {
 public:
  BlockLists(size_t lists, size_t blocks) : lists_(lists), links_(blocks) {}

  size_t size() const { return lists_.size(); }
  BlockIndex head(size_t list) const { return lists_[list].head; }

  void append(size_t list, BlockIndex block) {
    List& ends = lists_[list];
    links_[block] = {ends.tail, kNoBlock};
    (ends.tail == kNoBlock ? ends.head : links_[ends.tail].next) = block;
    ends.tail = block;
  }

  void unlink(size_t list, BlockIndex block) {
    List& ends = lists_[list];
    const Link link = links_[block];
    (link.previous == kNoBlock ? ends.head : links_[link.previous].next) = link.next;
    (link.next == kNoBlock ? ends.tail : links_[link.next].previous) = link.previous;
  }

 private:
  struct List {
    BlockIndex head = kNoBlock, tail = kNoBlock;
  };
  struct Link {
    BlockIndex previous = kNoBlock, next = kNoBlock;
  };

  std::vector<List> lists_;
  std::vector<Link> links_;  // by block
};

}  // namespace streamfs::ssd
