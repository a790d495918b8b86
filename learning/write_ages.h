// How long ago was what a write overwrites written? Where nothing else tells a page's lifetime that
// does, because it is how long the page lived last (Wang et al., "Separating Data via Block
// Invalidation Time Inference for Write Amplification Reduction in Log-Structured Storage",
// FAST'22).
//
// One byte a page, or for 2, 4, 8 ... pages where less memory is allowed: when it was last written,
// in 128ths of the scale, modulo 255. What is too old to be told from what is new is forgotten in
// time, a slice at each step.
// Thread safety: any thread, lock-free. Crash: memory only.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/zeroed_array.h"

namespace streamfs::learning {

class WriteAges {
 public:
  // Of so many pages, in at most `bytes_max`, which also serves pages that come later. Classes
  // (wire::age_class) are in parts of `scale_pages`.
  WriteAges(uint64_t pages, uint64_t scale_pages, uint64_t bytes_max);

  // wire::kAgeOld where nothing is known.
  uint8_t age_class(uint64_t page, uint64_t clock) const;
  void wrote(uint64_t first, uint64_t pages, uint64_t clock);

 private:
  static constexpr uint64_t kStepsAScale = 128;
  static constexpr uint64_t kForgetSteps = 160;
  static constexpr uint64_t kSlices = 64;
  // After 255 steps a time comes round again: before, each slice has been looked at.
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
  std::atomic<uint64_t> step_{0};  // all before it have been taken
  std::atomic<uint64_t> end_{0};   // nothing behind it was ever written
};

}  // namespace streamfs::learning
