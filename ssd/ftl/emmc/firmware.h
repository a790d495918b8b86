// The firmware of an eMMC with streams (Vishwakarma 2019): the page-mapped FTL with one active
// block for each of four streams and the default one, and garbage collection that ignores streams.
// It writes a context to a log in flash for each block of data. After a power cut it starts from
// the last context instead of a scan of all the flash.
//
// Thread safety: none. After a crash: as every Firmware; flushed writes are kept, and a page
// written since the last flush has its new or its old content.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ssd/ftl/emmc/interface.h"
#include "ssd/ftl/emmc/media.h"
#include "ssd/ftl/firmware.h"
#include "ssd/ftl/page_map_firmware.h"

namespace streamfs::ssd::emmc {

class EmmcFirmware final : public PageMapFirmware<Media> {
 public:
  explicit EmmcFirmware(const FirmwareParts& parts)
      : PageMapFirmware(parts), switch_(parts.geometry.user_pages) {}

  Result<void> power_up() override;
  int write(Lpn first, uint32_t count, uint16_t stream, uint16_t vstream,
            const std::byte* data) override;

  void set_streams(bool on) { switch_.set(on); }  // EXT_CSD byte 133
  bool streams_enabled() const { return switch_.enabled(); }
  // Returns whether writes go to the active blocks of their streams now.
  bool streams_on() const { return switch_.on(parts().state.live.live_pages); }
  // Returns the number of blocks that power-up read; all blocks if there was no context.
  uint32_t blocks_read() const { return blocks_read_; }

 private:
  StreamSwitch switch_;
  uint64_t since_context_ = 0;  // host pages
  uint32_t blocks_read_ = 0;
};

}  // namespace streamfs::ssd::emmc
