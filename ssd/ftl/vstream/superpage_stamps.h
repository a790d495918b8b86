// When pages were written, one time for each superpage: what is programmed at once over all planes
// of all dies, 768 pages in Yong (2021), V-B: 1.3 MB a terabyte in place of a gigabyte.
//
// A superpage that is being filled keeps the times of its pages beside it, as they are still in the
// copy buffer; when it is full all of them get their mean. (The source stamps a superpage with the
// time at which it is programmed: set_all().) A page's time is what written_at() says, and may
// change when its superpage fills: filled() says by how much.
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

  // Programmed now, all of its superpage: the source's stamp.
  void set_all(Ppn at, uint64_t time) { stamps_[at / pages_] = time; }

  // Pages come in order; filled(page, change) is called for each of a superpage that is full, with
  // what is added to its time.
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
