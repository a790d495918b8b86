// An eMMC with streams (ftl/emmc/firmware.h) in an image file, as the commands of its host see it.
// execute() follows JEDEC JESD84-B51; EXT_CSD[133] and the streams are Vishwakarma's (2019,
// section 4).
//
// The card has CMD6 (write byte), CMD8, CMD13, CMD23 and CMD25, addressed by sectors, and the bytes
// of EXT_CSD that these need. Data must be whole aligned pages of 4 KiB. A write in a context that
// is not open for writing is refused with ERROR.
//
// Thread safety: execute(), one thread at a time; the rest, errors and crashes: see ssd.h. The
// configuration of contexts is lost with the power.
#pragma once

#include <linux/mmc/ioctl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "ssd/ssd.h"

namespace streamfs::ssd {

class EmmcCard {
 public:
  static constexpr uint16_t kAddress = 1;

  // Errors: those of Ssd::open; EINVAL for an image of another FTL.
  static Result<std::unique_ptr<EmmcCard>> open(const std::string& path, const SsdOptions& options);
  // Requires: `ssd` has the FTL of an eMMC and outlives this.
  explicit EmmcCard(Ssd& ssd) : ssd_(ssd) {}

  // Returns the card as a device, for everything but its own commands.
  Ssd& ssd() { return ssd_; }

  // Executes commands in order and stores their answers (R1), up to the first that the card does
  // not answer. Returns 0 or an errno: ETIMEDOUT for a command that it does not have, EIO without
  // power.
  int execute(std::span<mmc_ioc_cmd> sequence);

  // Writes whole pages. `cmd23`, SET_BLOCK_COUNT's argument, has the stream. In real time, returns
  // when the flash would have answered.
  Result<void> write(uint32_t cmd23, uint64_t page, ConstBytes bytes);
  // SWITCH of a byte of EXT_CSD. Errors: EINVAL for a byte that is not writable or an invalid
  // value.
  Result<void> write_ext_csd(uint8_t index, uint8_t value);
  uint8_t read_ext_csd(uint8_t index);

  // Returns whether writes go to the active blocks of their streams now.
  bool streams_on();
  // Returns the number of blocks that power-up read; all blocks if there was no context.
  uint32_t blocks_read();

 private:
  int execute(mmc_ioc_cmd& command);
  uint32_t write_sectors(const mmc_ioc_cmd& command, int& error);
  void read_all_ext_csd(std::byte* into);

  std::unique_ptr<Ssd> owned_;  // null: ssd_ is another's
  Ssd& ssd_;
  std::array<uint8_t, 16> contexts_{};  // CONTEXT_CONF by context; 0 is unused
  uint32_t block_count_ = 0;            // argument of the last CMD23; 0: none since the last data
};

}  // namespace streamfs::ssd
