#include "ssd/ftl/emmc/firmware.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "ssd/ftl/emmc/context_log.h"
#include "ssd/ftl/page_map_firmware.h"
#include "ssd/ftl_counts.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd::emmc {

// Reads the last context and the blocks that were not full in it. Without a context it reads the
// whole spare area.
Result<void> EmmcFirmware::power_up() {
  Image& image = parts().image;
  const bool marks = !parts().read_only;
  const std::optional<Context> context = media().log().recover();
  blocks_read_ = parts().geometry.blocks;
  take_over(context ? scan_spare_since(image, marks, context->base, blocks_read_)
                    : scan_spare(image, marks));
  if (marks && powered()) (void)media().write_context();
  parts().state.ftl[kBlocksRead] = blocks_read_;
  parts().state.ftl[kStreamsOn] = streams_on() ? 1 : 0;
  return {};
}

int EmmcFirmware::write(Lpn first, uint32_t count, uint16_t stream, uint16_t vstream,
                        const std::byte* data) {
  const uint16_t active =
      switch_.frontier(static_cast<uint8_t>(stream), parts().state.live.live_pages);
  parts().state.ftl[kStreamsOn] = streams_on() ? 1 : 0;
  const int error = PageMapFirmware::write(first, count, active, vstream, data);
  since_context_ += count;
  if (error == 0 && since_context_ >= parts().geometry.pages_per_block) {
    since_context_ = 0;
    (void)media().write_context();
  }
  return error;
}

}  // namespace streamfs::ssd::emmc
