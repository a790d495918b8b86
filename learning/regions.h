// How long data lives around a place: a running mean of log2 lifetime, of all deaths and of those
// by trim, for the 1 MiB and 16 MiB a page lies in (64 KiB: page_history.h). The larger the region,
// the longer its memory.
// Thread safety: none. Crash: memory only.
#pragma once

#include <array>
#include <cstdint>

#include "learning/sparse_array.h"

namespace streamfs::learning {

// Of one region; half_log2 of lifetimes. Negative: nothing has died.
struct RegionLife {
  float all = -1;
  float trimmed = -1;
};

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
  // A page's contents died after living for half_log2 `life`.
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
