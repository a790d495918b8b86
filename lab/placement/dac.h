// DAC, dynamic data clustering (Chiang, Lee and Chang, Software: Practice and Experience 29(3),
// 1999): each page has a level, its class, which is 0 at its first write. A host's rewrite raises
// the level by one, a copy lowers it by one, and a trim leaves it alone. A page of the prefill goes
// to class 0, and its first write thereafter counts as its first.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/placement/policy.h"

namespace streamfs::lab {

class Dac final : public PlacementPolicy {
 public:
  Dac(uint16_t levels, uint32_t pages) : levels_(levels), level_(pages, kNew) {}

  uint16_t classes() const override { return levels_; }
  ssd::FrontierId for_write(const PageWrite& write, uint64_t) override {
    uint8_t& level = level_[write.page];
    if (write.prefill) return 0;
    if (level == kNew) {
      level = 0;
    } else if (level + 1 < levels_) {
      ++level;
    }
    return level;
  }
  ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId, uint64_t) override {
    uint8_t& level = level_[page];
    if (level == kNew) level = 0;
    if (level > 0) --level;
    return level;
  }

 private:
  static constexpr uint8_t kNew = UINT8_MAX;

  uint16_t levels_;
  std::vector<uint8_t> level_;  // by page
};

}  // namespace streamfs::lab
