// Tells the age of the data that a write overwrites. The age is the lifetime of the page's last
// content, and so predicts the lifetime of the next one (Wang et al., "Separating Data via Block
// Invalidation Time Inference for Write Amplification Reduction in Log-Structured Storage",
// FAST'22).
//
// A byte for each page, or for 2, 4, 8 ... pages if memory is short, holds the time of the last
// write in steps, which are 128ths of `scale_pages`, modulo 255. Entries older than kForgetSteps
// are cleared before their time comes round again: at each step one of kSlices slices of the
// entries is searched.
// Thread safety: any thread, lock-free. Crash: memory only.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/zeroed_array.h"

namespace streamfs::learning {

class WriteAges {
 public:
  // Chooses the pages per entry so that `pages` pages fit `bytes_max`. Later pages, which a device
  // that grows gets, have entries as far as `bytes_max` reaches; the age of others is not known.
  // Age classes (wire::age_class) are parts of `scale_pages`.
  WriteAges(uint64_t pages, uint64_t scale_pages, uint64_t bytes_max);

  // Returns the age class of the page's data at `clock`, in pages written: 1 to wire::kAgeOld,
  // which also means "not known".
  uint8_t age_class(uint64_t page, uint64_t clock) const;
  // Records a write. Requires: pages > 0.
  void wrote(uint64_t first, uint64_t pages, uint64_t clock);

 private:
  static constexpr uint64_t kStepsAScale = 128;
  static constexpr uint64_t kForgetSteps = 160;
  static constexpr uint64_t kSlices = 64;
  // A time comes round again after 255 steps; by then forget() has visited each slice.
  static constexpr uint64_t kTimes = 255;
  static_assert(kForgetSteps + kSlices < kTimes && kForgetSteps > kStepsAScale);

  using Time = std::atomic<uint8_t>;  // 1 + step modulo kTimes; 0: not known
  uint64_t steps_since(uint8_t time, uint64_t step) const;
  void step_to(uint64_t step);
  void forget(uint64_t slice, uint64_t step);

  uint32_t shift_ = 0;  // pages an entry, log2
  uint64_t scale_pages_;
  uint64_t step_pages_;
  ZeroedArray<Time> times_;
  std::atomic<uint64_t> step_{0};  // the last step for which forget() was run
  std::atomic<uint64_t> end_{0};   // entries from here on were never written
};

}  // namespace streamfs::learning
