// The firmware of a hybrid of persistent memory and NAND (hybrid.h). Both are parts of the image.
// Idle time collects garbage; it does not level wear.
//
// Thread safety: none. After a crash: as every Firmware. Opening reads the same few words and spare
// areas however large the device is. A read-only device recovers in a private copy of the memory.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "pmem/region.h"
#include "ssd/ftl/hybrid.h"
#include "ssd/ftl/nand_firmware.h"
#include "ssd/idle_work.h"

namespace streamfs::ssd {

class HybridFirmware final : public NandFirmware<HybridFtl> {
 public:
  using NandFirmware::NandFirmware;

  Result<void> power_up() override;
  IdleStep idle_step(const IdleLimits& limits, uint32_t most) override;

 private:
  std::unique_ptr<pmem::Region> memory_;
};

}  // namespace streamfs::ssd
