// A region below a mirror that a test can let fail, as a disk does: its sync is an error from then
// on, and what was stored since its last good one is anything.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::pmem {

class FailingRegion final : public Region {
 public:
  explicit FailingRegion(std::unique_ptr<Region> inner) : inner_(std::move(inner)) {
    attach(const_cast<std::byte*>(inner_->at(0)), inner_->size());
  }
  void fail() { fail_after(0); }
  void fail_after(int64_t syncs) { good_syncs_ = syncs; }

  MetaClass meta_class() const override { return MetaClass::kSynced; }
  Result<uint64_t> medium_bytes() override { return inner_->medium_bytes(); }
  bool extensible() const override { return inner_->extensible(); }

 protected:
  uint64_t put(uint64_t offset, std::span<const uint64_t> words) override {
    return inner_->store(offset, words);
  }
  uint64_t put_masked(uint64_t offset, uint64_t mask, uint64_t value) override {
    return inner_->store_masked(offset, mask, value);
  }
  void on_store(uint64_t, uint64_t) override {}
  void write_back_line(uint64_t offset) override { inner_->flush(offset, kLineSize).leave(); }
  void drain() override { inner_->fence(); }
  Result<void> make_durable() override {
    return good_syncs_-- <= 0 ? Error{EIO, "the copy that fails"} : inner_->sync();
  }
  Result<void> extend(uint64_t size) override { return inner_->grow(size); }

 private:
  std::unique_ptr<Region> inner_;
  std::atomic<int64_t> good_syncs_{INT64_MAX};
};

}  // namespace streamfs::pmem
