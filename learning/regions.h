// Lifetimes, in pages written to the device, of the data in the 1 MiB and the 16 MiB around a page:
// running means over all deaths and over deaths by trim. A larger region's mean moves more slowly.
// page_history.h has the means of 64 KiB.
// Thread safety: none. Crash: memory only.
#pragma once

#include <array>
#include <cstdint>

#include "learning/sparse_array.h"

namespace streamfs::learning {

// Running means of 2 · log2(lifetime + 1) in one region. Negative: nothing has died.
struct RegionLife {
  float all = -1;
  float trimmed = -1;
};

// Moves a running mean by the share `alpha`; the first value replaces a negative mean.
inline void move_mean(float& mean, float life, float alpha) {
  mean = mean < 0 ? life : mean + alpha * (life - mean);
}

class Regions {
 public:
  enum Size : uint8_t { k1MiB, k16MiB, kSizes };
  explicit Regions(uint64_t pages) {
    for (uint32_t size = 0; size < kSizes; ++size)
      levels_[size] = Level((pages >> kShift[size]) + 1);
  }

  RegionLife find(Size size, uint64_t page) const {
    return levels_[size].find(page >> kShift[size]);
  }
  // Counts the death of a page's contents. `life`: 2 · log2(lifetime + 1). Requires: the page is on
  // the device.
  void died(uint64_t page, float life, bool trimmed) {
    for (uint32_t size = 0; size < kSizes; ++size) {
      RegionLife& region = levels_[size].at(page >> kShift[size]);
      move_mean(region.all, life, kAlpha[size]);
      if (trimmed) move_mean(region.trimmed, life, kAlpha[size]);
    }
  }

 private:
  static constexpr std::array<uint32_t, kSizes> kShift = {8, 12};
  static constexpr std::array<float, kSizes> kAlpha = {0.06F, 0.01F};

  using Level = SparseArray<RegionLife, 4096>;
  std::array<Level, kSizes> levels_;
};

}  // namespace streamfs::learning
