// Numbers pages in the order of their first appearance, so that a trace of a few gigabytes spread
// over terabytes needs tables for the few gigabytes.
// Thread safety: none. Memory: for each run of kRun pages with a numbered page, 4 bytes a page and
// about 70 bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ssd/geometry.h"

namespace streamfs::ssd {

template <uint64_t kRun>
class NumbersByRun {
 public:
  // Returns the page's number, a new one at the first call; kNoPage if all numbers are used.
  Lpn number(uint64_t page) {
    Lpn& lpn = run_of(page / kRun)[page % kRun];
    if (lpn == kNoPage && count_ < kNoPage) lpn = count_++;
    return lpn;
  }

  struct Numbered {
    uint64_t page;
    Lpn number;
  };

  // Appends the numbered pages of [first, end) to `found`, in order. The cost of a long range is
  // bounded by the number of runs in the table.
  void known(uint64_t first, uint64_t end, std::vector<Numbered>& found) const {
    const uint64_t first_run = first / kRun, end_run = (end + kRun - 1) / kRun;
    if (end_run - first_run <= runs_.size()) {
      for (uint64_t run = first_run; run < end_run; ++run)
        if (const auto at = runs_.find(run); at != runs_.end())
          append(run, *at->second, first, end, found);
      return;
    }
    std::vector<uint64_t> hit;
    for (const auto& [run, pages] : runs_)
      if (run >= first_run && run < end_run) hit.push_back(run);
    std::ranges::sort(hit);
    for (const uint64_t run : hit) append(run, *runs_.at(run), first, end, found);
  }

  uint32_t size() const { return count_; }

 private:
  using Run = std::array<Lpn, kRun>;

  Run& run_of(uint64_t number) {
    if (last_ != nullptr && last_number_ == number) return *last_;
    std::unique_ptr<Run>& run = runs_[number];
    if (run == nullptr) {
      run = std::make_unique<Run>();
      run->fill(kNoPage);
    }
    last_ = run.get();
    last_number_ = number;
    return *last_;
  }

  static void append(uint64_t number, const Run& run, uint64_t first, uint64_t end,
                     std::vector<Numbered>& found) {
    for (uint64_t i = 0; i < kRun; ++i) {
      const uint64_t page = number * kRun + i;
      if (page >= first && page < end && run[i] != kNoPage) found.push_back({page, run[i]});
    }
  }

  std::unordered_map<uint64_t, std::unique_ptr<Run>> runs_;
  Run* last_ = nullptr;
  uint64_t last_number_ = 0;
  Lpn count_ = 0;
};

using PageNumbers = NumbersByRun<64>;

}  // namespace streamfs::ssd
