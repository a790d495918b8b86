// Which pages do small devices follow? In each group of `stride` neighbouring chunks of 64 KiB,
// each of `parts` follows one chunk of its own, drawn for each group (spatial sampling: Waldspurger
// et al., "Efficient MRC Construction with SHARDS", FAST'15). A sample drawn from all chunks alike
// would hold a few per cent more than its share of the live data, or less, and that is spare taken
// or given. A part numbers its chunks in the order of addresses, without gaps. Thread safety:
// const.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/mix.h"

namespace streamfs::classifier {

class ChunkSample {
 public:
  static constexpr uint64_t kChunkPages = 16;

  // Precondition: 0 < parts ≤ stride.
  ChunkSample(uint64_t stride, uint64_t parts) : stride_(stride), parts_(parts) {}

  uint64_t stride() const { return stride_; }  // a part follows one in so many chunks
  // How many pages of so many a part follows, at most.
  uint64_t share_of(uint64_t pages) const {
    const uint64_t group = stride_ * kChunkPages;
    return (pages + group - 1) / group * kChunkPages;
  }
  // Calls visit(part, page, its number in the part) for all pages of [first, end) that are
  // followed.
  template <typename Visit>
  void each(uint64_t first, uint64_t end, const Visit& visit) const {
    while (first < end) {
      const uint64_t chunk = first / kChunkPages, group = chunk / stride_;
      const uint64_t stop = std::min(end, (chunk + 1) * kChunkPages);
      const uint64_t part = (chunk % stride_ + drawn(group)) % stride_;
      for (; part < parts_ && first < stop; ++first)
        visit(part, first, group * kChunkPages + first % kChunkPages);
      first = stop;
    }
  }
  // The number of the first page from this one on that the first part follows.
  uint64_t number_from(uint64_t page) const {
    const uint64_t group = page / (stride_ * kChunkPages);
    const uint64_t begins = (group * stride_ + (stride_ - drawn(group)) % stride_) * kChunkPages;
    return group * kChunkPages + std::min(kChunkPages, page - std::min(page, begins));
  }

 private:
  uint64_t drawn(uint64_t group) const { return mix64(group) % stride_; }

  const uint64_t stride_, parts_;
};

}  // namespace streamfs::classifier
