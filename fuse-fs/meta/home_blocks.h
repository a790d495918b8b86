// Collects the 4 KiB blocks of META that one change touches at home, for statistics. A block file
// system would write all of these blocks, so their words are compared with the words that were
// programmed.
// Thread safety: none; a value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace streamfs::meta {

class HomeBlocks {
 public:
  void add(uint64_t offset, uint64_t length) {
    if (length == 0) return;
    for (uint64_t at = offset / kBlockSize; at <= (offset + length - 1) / kBlockSize; ++at) {
      blocks_.push_back(at);
    }
  }
  // Returns the number of words in the distinct blocks, and removes all blocks.
  uint64_t take_words() {
    std::ranges::sort(blocks_);
    const auto repeated = std::ranges::unique(blocks_);
    const auto distinct = static_cast<uint64_t>(repeated.begin() - blocks_.begin());
    blocks_.clear();
    return distinct * (kBlockSize / kWordSize);
  }

 private:
  std::vector<uint64_t> blocks_;
};

}  // namespace streamfs::meta
