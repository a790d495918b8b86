// The write times of pages, one for each superpage: the pages programmed at once over all planes of
// all dies, 768 in Yong (2021), V-B. Stamps take 1.3 MB a terabyte instead of a gigabyte.
//
// A superpage that is being filled keeps the time of each page, because the pages are still in the
// copy buffer; when it is full, all of them get their mean. (The source stamps a superpage with the
// time of its program: set_all().) The result of written_at() may change when the page's superpage
// fills; add() reports the change to `filled`.
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

  // Stamps the whole superpage with its program time, as the source does.
  void set_all(Ppn at, uint64_t time) { stamps_[at / pages_] = time; }

  // Stamps one page. When its superpage is full, calls filled(page, change) for each of its pages;
  // `change` is added to the page's time. Requires: the pages of a superpage come in order.
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
  std::vector<Filling> filling_;  // one for each open block at most
};

}  // namespace streamfs::ssd::vstream
