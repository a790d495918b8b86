// An eMMC with streams (ftl/emmc/firmware.h) in an image file, as the commands of its host see it
// (JEDEC eMMC 5.1; Vishwakarma 2019, section 4).
//
// Thread safety, errors and crashes: see ssd.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "ssd/ssd.h"

namespace streamfs::ssd {

class EmmcCard {
 public:
  // Errors: those of Ssd::open; EINVAL for an image of another FTL.
  static Result<std::unique_ptr<EmmcCard>> open(const std::string& path, const SsdOptions& options);

  // Returns the card as a device, for everything but its own commands.
  Ssd& ssd() { return *ssd_; }

  // Writes whole pages. `cmd23`, SET_BLOCK_COUNT's argument, has the stream.
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
  explicit EmmcCard(std::unique_ptr<Ssd> ssd) : ssd_(std::move(ssd)) {}

  const std::unique_ptr<Ssd> ssd_;
};

}  // namespace streamfs::ssd
