// The 4 KiB blocks of META that one change touches at home: what a block file system would have
// written for it, to hold the words programmed against.
// Thread safety: none; a value. Crash: memory only.
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
  // Of the distinct blocks; empty afterwards.
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
