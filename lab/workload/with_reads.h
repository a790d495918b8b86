// Adds random one-page reads between the requests of a generated workload, up to a given share of
// all pages read and written. Reads of the workload itself do not count. Added reads have no effect
// on placement; they measure the wait behind programs and copies.
// Thread safety: none. Memory: two batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab {

class WithReads final : public OpSource {
 public:
  // Reads go to pages below `pages`; 0 ≤ share < 1.
  WithReads(std::unique_ptr<OpSource> inner, uint32_t pages, double share, uint64_t seed)
      : inner_(std::move(inner)),
        pages_(pages),
        reads_a_write_(share / (1 - share)),
        seed_(seed),
        random_(seed) {}

  Result<std::span<const PageOp>> next() override {
    SFS_ASSIGN(const std::span<const PageOp> ops, inner_->next());
    batch_.clear();
    for (const PageOp& op : ops) {
      if (op.address == op.request_first) read();
      batch_.push_back(op);
      if (op.kind == OpKind::kWrite) due_ += reads_a_write_;
    }
    return std::span<const PageOp>(batch_);
  }

  Result<void> rewind() override {
    random_ = Random(seed_);
    due_ = 0;
    return inner_->rewind();
  }

  std::optional<StreamFacts> facts() const override { return inner_->facts(); }
  Tag resident_tag(ssd::Lpn page) const override { return inner_->resident_tag(page); }

 private:
  // Emits the reads that are due for the writes so far.
  void read() {
    for (; due_ >= 1; due_ -= 1) {
      const ssd::Lpn page = random_.below(pages_);
      batch_.push_back(
          {.page = page, .address = page, .request_first = page, .kind = OpKind::kRead});
    }
  }

  const std::unique_ptr<OpSource> inner_;
  const uint32_t pages_;
  const double reads_a_write_;
  const uint64_t seed_;
  Random random_;
  double due_ = 0;
  std::vector<PageOp> batch_;
};

}  // namespace streamfs::lab
