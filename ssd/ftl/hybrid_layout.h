// The hybrid FTL's layout of persistent memory, in words:
//
//   header     line 0: magic and version, user pages, pages per block and blocks
//   frontiers  line 1: for each open block, its number + 1 (0: none); then the first block that was
//              never used
//   pool       line 2: erased blocks, number + 1 each (0: none)
//   erases     a word a block
//   dead       a bit a page, in whole words for each block: set if the page is programmed and not
//              live; undefined in a free block
//   map        4 bytes a logical page: the physical page + 1 (0: none)
//
// Thread safety: pure functions. After a crash: hybrid.h has the order of the stores.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

inline constexpr uint32_t kHybridFrontiers = 2;  // host writes, copies
inline constexpr uint32_t kHybridPool = kLineSize / kWordSize;

class HybridLayout {
 public:
  explicit HybridLayout(const Geometry& geometry)
      : dead_words_(div_round_up(geometry.pages_per_block, 64)),
        erases_(3 * kLineSize),
        dead_(round_up(erases_ + geometry.blocks * kWordSize, kLineSize)),
        map_(round_up(dead_ + geometry.blocks * dead_words_ * kWordSize, kLineSize)),
        bytes_(round_up(map_ + uint64_t{geometry.user_pages} * sizeof(uint32_t), kLineSize)) {}

  static constexpr uint64_t header(uint32_t word) { return word * kWordSize; }
  static constexpr uint64_t open(uint32_t frontier) { return kLineSize + frontier * kWordSize; }
  static constexpr uint64_t never_used() { return open(kHybridFrontiers); }
  static constexpr uint64_t pool(uint32_t slot) { return 2 * kLineSize + slot * kWordSize; }
  uint64_t erases(BlockIndex block) const { return erases_ + uint64_t{block} * kWordSize; }
  uint32_t dead_words() const { return static_cast<uint32_t>(dead_words_); }
  uint64_t dead(BlockIndex block, uint32_t word) const {
    return dead_ + (block * dead_words_ + word) * kWordSize;
  }
  uint64_t map(Lpn page) const { return map_ + uint64_t{page} * sizeof(uint32_t); }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t dead_words_;
  uint64_t erases_, dead_, map_, bytes_;
};

}  // namespace streamfs::ssd
