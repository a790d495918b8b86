// A stream with one write of every page, in order, before it: a device that starts full.
// Thread safety: none. Memory: one batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "emulator/workload/op_source.h"

namespace streamfs::emulator {

class Prefilled final : public OpSource {
 public:
  // `inner` outlives this; `facts` are what a pass over it said.
  Prefilled(OpSource& inner, const StreamFacts& facts)
      : inner_(inner), pages_(facts.footprint_pages), facts_(facts) {
    facts_.writes += pages_;
    facts_.peak_live_pages = pages_;
  }

  Result<std::span<const PageOp>> next() override {
    if (next_ == pages_) return inner_.next();
    batch_.clear();
    for (; next_ < pages_ && batch_.size() < kBatchOps; ++next_) {
      const Tag tag = inner_.resident_tag(next_);
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
  const uint32_t pages_;
  StreamFacts facts_;
  uint32_t next_ = 0;
  std::vector<PageOp> batch_;
};

}  // namespace streamfs::emulator
