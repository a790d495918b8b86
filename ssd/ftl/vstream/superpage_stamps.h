// The write times of pages, one time for each superpage instead of each page: 1.3 MB instead of a
// gigabyte for a terabyte of 4 KiB pages. A superpage is the pages that are programmed at once over
// all planes of all dies (768 in Yong 2021, V-B), or the largest part of them that divides a block.
//
// An object is used in one of two ways. set_all() stamps a superpage with the time of its program,
// as the paper does. add() stamps pages: while a superpage is being filled, each page has its own
// time, because the pages are still in the copy buffer; when it is full, all of them get their
// mean.
//
// Thread safety: none. Memory: 8 bytes a superpage, 6 KiB for each that is being filled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/assert.h"
#include "ssd/geometry.h"

namespace streamfs::ssd::vstream {

class SuperpageStamps {
 public:
  explicit SuperpageStamps(const Geometry& geometry)
      : pages_(std::gcd(geometry.wordline_pages * geometry.nand.die_count(),
                        geometry.pages_per_block)),
        stamps_(geometry.physical_pages() / pages_) {}

  uint32_t superpage_pages() const { return pages_; }

  // Stamps the whole superpage with its program time.
  void set_all(Ppn at, uint64_t time) { stamps_[at / pages_] = time; }

  // Stamps one page. When its superpage is full, calls filled(page, change) for each of its pages,
  // where `change` is the difference that the mean makes to the page's time. written_at() returns
  // the old times until add() returns. Requires: the pages of a superpage come in order; its first
  // page may come again at any time, after an erase.
  template <typename Filled>
  void add(Ppn at, uint64_t time, Filled filled) {
    const uint32_t superpage = at / pages_, place = at % pages_;
    if (place == 0) begin(superpage);
    std::vector<uint64_t>& times = filling(superpage)->times;
    SFS_ASSERT(times.size() == place);
    times.push_back(time);
    if (place + 1 < pages_) return;
    uint64_t sum = 0;
    for (const uint64_t one : times) sum += one;
    const uint64_t mean = sum / pages_;
    for (uint32_t i = 0; i < pages_; ++i)
      filled(superpage * pages_ + i, static_cast<int64_t>(mean - times[i]));
    stamps_[superpage] = mean;
    filling_.erase(filling_.begin() + (filling(superpage) - filling_.data()));
  }

  // Requires: the page is stamped.
  uint64_t written_at(Ppn page) const {
    const uint64_t stamp = stamps_[page / pages_];
    if (stamp != kFilling) return stamp;
    const auto found = std::ranges::find(filling_, page / pages_, &Filling::superpage);
    return found->times[page % pages_];
  }

 private:
  static constexpr uint64_t kFilling = UINT64_MAX;
  struct Filling {
    uint32_t superpage;
    std::vector<uint64_t> times;
  };

  void begin(uint32_t superpage) {
    std::erase_if(filling_, [&](const Filling& one) { return one.superpage == superpage; });
    stamps_[superpage] = kFilling;
    filling_.push_back({superpage, {}});
    filling_.back().times.reserve(pages_);
  }
  Filling* filling(uint32_t superpage) {
    const auto found = std::ranges::find(filling_, superpage, &Filling::superpage);
    SFS_ASSERT(found != filling_.end());
    return &*found;
  }

  const uint32_t pages_;
  std::vector<uint64_t> stamps_;
  std::vector<Filling> filling_;  // one for each block that is open or was closed half full
};

}  // namespace streamfs::ssd::vstream
