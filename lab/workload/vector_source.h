// A stream of operations in memory, for tests and for programs that generate their own.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab {

class VectorSource final : public OpSource {
 public:
  explicit VectorSource(std::vector<PageOp> ops) : ops_(std::move(ops)) {}

  Result<std::span<const PageOp>> next() override {
    const std::span<const PageOp> left = std::span<const PageOp>(ops_).subspan(next_);
    const std::span<const PageOp> batch = left.first(std::min(left.size(), kBatchOps));
    next_ += batch.size();
    return batch;
  }
  Result<void> rewind() override {
    next_ = 0;
    return {};
  }

 private:
  std::vector<PageOp> ops_;
  size_t next_ = 0;
};

}  // namespace streamfs::lab
