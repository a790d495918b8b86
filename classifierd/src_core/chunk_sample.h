// Chooses the pages that small devices follow. Each of `parts` disjoint samples (a part) follows
// one 64 KiB chunk of each group of `stride` neighbouring chunks, drawn for each group (spatial
// sampling: Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST'15). If chunks were
// drawn from the whole device instead, a part could hold a few per cent more or less than its share
// of the live data, and its device would have less or more spare. A part numbers its pages in the
// order of addresses, without gaps.
// Thread safety: const methods.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/mix.h"

namespace streamfs::classifier {

class ChunkSample {
 public:
  static constexpr uint64_t kChunkPages = 16;

  // Requires: 0 < parts ≤ stride.
  ChunkSample(uint64_t stride, uint64_t parts) : stride_(stride), parts_(parts) {}

  uint64_t stride() const { return stride_; }  // a part follows one in so many chunks
  // Returns the most pages that a part follows of the first `pages` pages of the device.
  uint64_t share_of(uint64_t pages) const {
    const uint64_t group = stride_ * kChunkPages;
    return (pages + group - 1) / group * kChunkPages;
  }
  // Calls visit(part, page, number) for each page of [first, end) that a part follows; `number` is
  // the page's number in the part.
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
  // Returns the number in part 0 of its first page at or after `page`.
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
