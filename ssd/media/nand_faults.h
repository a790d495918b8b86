// What NAND does wrong: asked by the media inside its operations. Power cuts are for tests.
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

  // Is this wordline of the block, or the block itself, at the end of its life?
  virtual bool program_fails(BlockIndex /*block*/, uint32_t /*erases*/, uint32_t /*wordline*/) {
    return false;
  }
  virtual bool erase_fails(BlockIndex /*block*/, uint32_t /*erases*/) { return false; }

  // Does the power go inside this operation? After yes, nothing reaches the flash any more, and
  // each page of the operation (programmed together; all pages of an erased block) is torn.
  // A program: a wordline, or without power-loss protection's need to wait for one, a map unit.
  virtual bool power_fails_programming(Ppn /*first*/, uint32_t /*pages*/) { return false; }
  virtual bool power_fails_erasing(BlockIndex /*block*/) { return false; }
  // Leaves in a page's data and spare entry (as they would be after a program, before an erase)
  // what a half-done operation leaves.
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

// Blocks that are bad from the factory: `bad_blocks` different ones, by the seed.
std::vector<BlockIndex> factory_bad_blocks(const Geometry& geometry);

}  // namespace streamfs::ssd
