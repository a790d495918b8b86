// Puts a prefill before a stream: one write of each of the first pages, in order, so that the
// device starts full.
// Thread safety: none. Memory: one batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab {

struct Prefill {
  double share = 0;    // of the footprint, at most 1, from page 0 on; 0: no prefill
  bool tagged = true;  // with the stream's resident tags; else vStream kUntagged
  bool operator==(const Prefill&) const = default;
};
inline constexpr uint16_t kUntagged = UINT16_MAX;

class Prefilled final : public OpSource {
 public:
  // `facts` are those of `inner`, which outlives this.
  Prefilled(OpSource& inner, const StreamFacts& facts, const Prefill& prefill)
      : inner_(inner),
        tagged_(prefill.tagged),
        pages_(static_cast<uint32_t>(prefill.share * facts.footprint_pages)),
        facts_(facts) {
    facts_.writes += pages_;
    // An upper bound: the exact peak would need a pass over both streams.
    facts_.peak_live_pages = facts.footprint_pages;
  }

  uint32_t pages() const { return pages_; }  // of the prefill

  Result<std::span<const PageOp>> next() override {
    if (next_ == pages_) return inner_.next();
    batch_.clear();
    for (; next_ < pages_ && batch_.size() < kBatchOps; ++next_) {
      const Tag tag = tagged_ ? inner_.resident_tag(next_) : Tag{kUntagged, 0};
      batch_.push_back(
          {.page = next_,
           .address = next_,
           .request_first = next_ / kRequestPages * kRequestPages,
           .request_pages = std::min(kRequestPages, pages_ - next_ / kRequestPages * kRequestPages),
           .vstream = tag.vstream,
           .pstream = tag.pstream});
    }
    return std::span<const PageOp>(batch_);
  }

  Result<void> rewind() override {
    next_ = 0;
    return inner_.rewind();
  }

  std::optional<StreamFacts> facts() const override { return facts_; }

 private:
  static constexpr uint32_t kRequestPages = 256;  // 1 MiB

  OpSource& inner_;
  const bool tagged_;
  const uint32_t pages_;
  StreamFacts facts_;
  uint32_t next_ = 0;
  std::vector<PageOp> batch_;
};

}  // namespace streamfs::lab
