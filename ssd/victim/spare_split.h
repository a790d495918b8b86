// Spare split: each stream's share of the spare pages is ∝ √(r · f), where r is the rate at which
// its pages die and f the number of its live pages. It chooses the greedy victim of the stream that
// is most over its share. The split minimises the copies of separated streams with FIFO or greedy
// inside (Desnoyers, "Analytic models of SSD write performance", ACM TOS 10(2), 2014; Stoica and
// Ailamaki, VLDB'13). Both figures are measured: f is the valid pages of a stream's closed blocks,
// r their deaths. All r are halved when their sum reaches the device's pages. A choice looks at
// each stream once; it is kNoBlock if no candidate has a dead page.
// Thread safety: none; the FTL's lock. After a crash: r is measured anew.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "ssd/geometry.h"
#include "ssd/victim/block_lists.h"
#include "ssd/victim/view.h"

namespace streamfs::ssd {

class SpareSplit {
 public:
  static constexpr const char* kName = "spare-split";

  explicit SpareSplit(const Geometry& geometry, const VictimOptions& /*options*/ = {})
      : per_block_(geometry.pages_per_block),
        halve_at_(geometry.physical_pages()),
        streams_(geometry.streams, Stream{.fewest = geometry.pages_per_block}),
        stream_of_(geometry.blocks),
        lists_(size_t{geometry.streams} * (geometry.pages_per_block + 1), geometry.blocks) {}

  void add(BlockIndex block, const BlockView& view) {
    const auto stream = static_cast<uint16_t>(view.frontier % streams_.size());
    stream_of_[block] = stream;
    ++streams_[stream].blocks;
    streams_[stream].alive += view.valid;
    append(block, stream, view.valid);
  }
  void remove(BlockIndex block, uint32_t valid) {
    Stream& stream = streams_[stream_of_[block]];
    --stream.blocks;
    stream.alive -= valid;
    lists_.unlink(list_of(stream_of_[block], valid), block);
  }
  void moved(BlockIndex block, uint32_t from, uint32_t to) {
    const uint16_t stream = stream_of_[block];
    streams_[stream].alive -= from - to;
    streams_[stream].deaths += from - to;
    deaths_ += from - to;
    if (deaths_ >= halve_at_) halve();
    lists_.unlink(list_of(stream, from), block);
    append(block, stream, to);
  }

  BlockIndex choose(uint64_t /*clock*/) {
    double spare = 0, weights = 0;
    for (const Stream& stream : streams_) {
      spare += spare_of(stream);
      weights += weight_of(stream);
    }
    BlockIndex best = kNoBlock;
    double most_over = 0;
    for (size_t i = 0; i < streams_.size(); ++i) {
      const BlockIndex candidate = greedy_of(static_cast<uint16_t>(i));
      if (candidate == kNoBlock) continue;
      const double share = weights > 0 ? spare * weight_of(streams_[i]) / weights : 0;
      const double over = spare_of(streams_[i]) - share;
      if (best != kNoBlock && over <= most_over) continue;
      best = candidate;
      most_over = over;
    }
    return best;
  }

 private:
  struct Stream {
    uint64_t blocks = 0, alive = 0;
    double deaths = 0;
    uint32_t fewest = 0;  // the stream's lists below this are empty
  };

  size_t list_of(uint16_t stream, uint32_t valid) const {
    return size_t{stream} * (per_block_ + 1) + valid;
  }
  double spare_of(const Stream& stream) const {
    return static_cast<double>(stream.blocks * per_block_ - stream.alive);
  }
  static double weight_of(const Stream& stream) {
    return std::sqrt(stream.deaths * static_cast<double>(stream.alive));
  }

  void append(BlockIndex block, uint16_t stream, uint32_t valid) {
    lists_.append(list_of(stream, valid), block);
    streams_[stream].fewest = std::min(streams_[stream].fewest, valid);
  }

  // Skips blocks without a dead page: to collect them frees nothing.
  BlockIndex greedy_of(uint16_t stream) {
    uint32_t& fewest = streams_[stream].fewest;
    while (fewest < per_block_ && lists_.head(list_of(stream, fewest)) == kNoBlock) ++fewest;
    return fewest < per_block_ ? lists_.head(list_of(stream, fewest)) : kNoBlock;
  }

  void halve() {
    deaths_ /= 2;
    for (Stream& stream : streams_) stream.deaths /= 2;
  }

  const uint32_t per_block_;
  const uint64_t halve_at_;
  uint64_t deaths_ = 0;
  std::vector<Stream> streams_;
  std::vector<uint16_t> stream_of_;  // by block
  BlockLists lists_;                 // by stream and valid pages
};

}  // namespace streamfs::ssd
