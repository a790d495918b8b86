// NAND whose power goes at a chosen operation, and whose blocks may fail.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>

#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/layout.h"
#include "ssd/media/nand_faults.h"

namespace streamfs::ssd {

// Cuts the power inside the n-th operation from now on. Knows which blocks are half erased or have
// failed: to program those loses data on real flash.
class CutNand final : public NandFaults {
 public:
  CutNand(uint64_t seed, uint32_t pages_per_block, bool wears)
      : random_(seed), pages_per_block_(pages_per_block), wears_(wears) {}

  void cut_after(uint64_t operations) { left_ = operations; }
  void cut_erasing() { erasing_ = true; }  // whenever that comes
  void never() {
    left_ = UINT64_MAX;
    erasing_ = false;
  }
  uint64_t erases_cut = 0, programs_cut = 0;

  bool program_fails(BlockIndex block, uint32_t, uint32_t) override { return fails(block); }
  bool erase_fails(BlockIndex block, uint32_t) override { return fails(block); }
  bool power_fails_programming(Ppn first, uint32_t /*pages*/) override {
    EXPECT_FALSE(half_erased_.contains(first / pages_per_block_)) << "half-erased block programmed";
    EXPECT_FALSE(failed_.contains(first / pages_per_block_)) << "failed block programmed";
    if (erasing_ || left_-- != 0) return false;
    ++programs_cut;
    return true;
  }
  bool power_fails_erasing(BlockIndex block) override {
    half_erased_.erase(block);
    if (!erasing_ && left_-- != 0) return false;
    half_erased_.insert(block);
    ++erases_cut;
    return true;
  }
  void tear(Bytes data, SpareEntry& entry) override {
    const uint64_t fate = random_() % 5;
    if (fate == 0) return;  // this one made it
    const size_t kept = random_() % data.size();
    if (fate != 1)
      for (size_t i = kept; i < data.size(); ++i) data[i] = static_cast<std::byte>(random_());
    if (fate == 1 || fate == 3) {
      auto* bytes = reinterpret_cast<uint8_t*>(&entry);
      for (size_t i = random_() % 40; i < 40; ++i) bytes[i] = static_cast<uint8_t>(random_());
    }
    if (fate == 4) entry = SpareEntry{};
  }

 private:
  static constexpr size_t kFailures = 25;  // of a device that wears

  bool fails(BlockIndex block) {
    if (!wears_ || failed_.size() >= kFailures || random_() % 200 != 0) return false;
    failed_.insert(block);
    return true;
  }

  std::mt19937_64 random_;
  const uint32_t pages_per_block_;
  const bool wears_;
  uint64_t left_ = UINT64_MAX;
  bool erasing_ = false;
  std::set<BlockIndex> half_erased_, failed_;
};

}  // namespace streamfs::ssd
