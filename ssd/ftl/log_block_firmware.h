// The firmware of the log-block FTL (log_block.h). Idle time does nothing: a merge before a log
// block is full copies more than one after. All of the spare but one block are log blocks.
//
// Thread safety: none. After a crash: as every Firmware; trims are kept in the image's table.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ssd/ftl/firmware.h"
#include "ssd/ftl/log_block.h"
#include "ssd/ftl/nand_firmware.h"
#include "ssd/ftl_counts.h"
#include "ssd/geometry.h"
#include "ssd/idle_work.h"

namespace streamfs::ssd {

class LogBlockFirmware final : public NandFirmware<LogBlockFtl> {
 public:
  explicit LogBlockFirmware(const FirmwareParts& parts)
      : NandFirmware(parts), before_(parts.state.ftl) {}

  Result<void> power_up() override;
  int write(Lpn first, uint32_t count, uint16_t stream, uint16_t vstream,
            const std::byte* data) override;
  void trim(Lpn page) override;
  IdleStep idle_step(const IdleLimits& /*limits*/, uint32_t /*most*/) override {
    return IdleStep::kNothing;
  }

 private:
  const FtlCounts before_;  // at power-up
};

}  // namespace streamfs::ssd
