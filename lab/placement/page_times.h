// PageTimes holds a time of the clock for each page, in 4 bytes. Times are exact for the first
// 2^32 − 1 host pages (16 TiB). When the clock outgrows a word, all times are halved, and their
// error is at most 2^-31 of the clock.
// Thread safety: none.
#pragma once

#include <cstdint>

#include "base/huge_pages.h"
#include "ssd/geometry.h"

namespace streamfs::lab {

class PageTimes {
 public:
  explicit PageTimes(uint32_t pages) : times_(pages, kUnknown) {}

  bool known(ssd::Lpn page) const { return times_[page] != kUnknown; }
  uint64_t at(ssd::Lpn page) const { return uint64_t{times_[page]} << shift_; }
  // Returns the time since. Requires, as at() does: known(page).
  uint64_t since(ssd::Lpn page, uint64_t clock) const { return clock - at(page); }
  void prefetch(ssd::Lpn page) const { __builtin_prefetch(&times_[page], 1); }
  void forget(ssd::Lpn page) { times_[page] = kUnknown; }
  void set(ssd::Lpn page, uint64_t clock) {
    while (clock >> shift_ >= kUnknown) halve();
    times_[page] = static_cast<uint32_t>(clock >> shift_);
  }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  void halve() {
    ++shift_;
    for (uint32_t& time : times_)
      if (time != kUnknown) time /= 2;
  }

  HugeVector<uint32_t> times_;  // by page
  unsigned shift_ = 0;
};

}  // namespace streamfs::lab
