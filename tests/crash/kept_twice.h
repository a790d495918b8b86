// Two copies of META in one region, so that one crash image is of both, and each keeps its own
// choice of what was not fenced.
// Thread safety: none.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/types.h"
#include "pmem/mirror_region.h"
#include "pmem/region.h"

namespace streamfs::meta {

// A copy of META. Its sync fails while `*fails`, if that is given.
class Side final : public pmem::Region {
 public:
  // The only copy, which is all of the region.
  explicit Side(pmem::Region& whole) : both_(whole), begin_(0), fails_(nullptr) {
    attach(const_cast<std::byte*>(whole.at(0)), whole.size());
  }
  Side(pmem::Region& both, size_t which, const bool* fails = nullptr)
      : both_(both), begin_(which * both.size() / 2), fails_(fails) {
    attach(const_cast<std::byte*>(both.at(begin_)), both.size() / 2);
  }
  pmem::MetaClass meta_class() const override { return pmem::MetaClass::kPersistent; }

 protected:
  uint64_t put(uint64_t offset, std::span<const uint64_t> words) override {
    return both_.store(begin_ + offset, words);
  }
  uint64_t put_masked(uint64_t offset, uint64_t mask, uint64_t value) override {
    return both_.store_masked(begin_ + offset, mask, value);
  }
  void on_store(uint64_t, uint64_t) override {}
  void write_back_line(uint64_t offset) override {
    both_.flush(begin_ + offset, kLineSize).leave();
  }
  void drain() override { both_.fence(); }
  Result<void> make_durable() override {
    return fails_ != nullptr && *fails_ ? Result<void>(Error{EIO}) : Result<void>();
  }

 private:
  pmem::Region& both_;
  uint64_t begin_;
  const bool* fails_;
};

inline std::unique_ptr<pmem::Region> mirror(pmem::Region& both, const bool* first_fails = nullptr) {
  return std::make_unique<pmem::MirrorRegion>(std::make_unique<Side>(both, 0, first_fails),
                                              std::make_unique<Side>(both, 1));
}

}  // namespace streamfs::meta
