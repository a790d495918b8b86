// Faults of NAND. The media ask for them inside their operations. Power cuts are for tests.
// Thread safety: called under the SSD's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/layout.h"

namespace streamfs::ssd {

class NandFaults {
 public:
  virtual ~NandFaults() = default;

  // Returns whether this program of a wordline, or this erase, fails.
  virtual bool program_fails(BlockIndex /*block*/, uint32_t /*erases*/, uint32_t /*wordline*/) {
    return false;
  }
  virtual bool erase_fails(BlockIndex /*block*/, uint32_t /*erases*/) { return false; }

  // Returns whether the power fails inside this operation. If so, each page of the operation is
  // torn (all pages of a block for an erase), and nothing reaches the flash afterwards. A program
  // is a wordline or, with power-loss protection, a map unit. In the eMMC's log of contexts, whose
  // pages lie behind the flash, it is a page, and an erase that loses the power tears no page.
  virtual bool power_fails_programming(Ppn /*first*/, uint32_t /*pages*/) { return false; }
  virtual bool power_fails_erasing(BlockIndex /*block*/) { return false; }
  // Changes a page's data and spare entry to the result of a half-done operation. On entry they
  // are as after a whole program, or as before an erase.
  virtual void tear(Bytes /*data*/, SpareEntry& /*entry*/) {}
};

// Failures at the rates of a geometry.
class SeededFailures final : public NandFaults {
 public:
  explicit SeededFailures(const FailureRates& rates) : rates_(rates) {}
  bool program_fails(BlockIndex block, uint32_t erases, uint32_t wordline) override;
  bool erase_fails(BlockIndex block, uint32_t erases) override;

 private:
  FailureRates rates_;
};

// Returns `bad_blocks` different blocks that are bad from the factory, chosen by the seed.
std::vector<BlockIndex> factory_bad_blocks(const Geometry& geometry);

}  // namespace streamfs::ssd
