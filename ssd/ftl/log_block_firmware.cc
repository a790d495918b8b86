#include "ssd/ftl/log_block_firmware.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "ssd/ftl/log_block.h"
#include "ssd/ftl/nand_firmware.h"
#include "ssd/ftl_counts.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/layout.h"

namespace streamfs::ssd {

Result<void> LogBlockFirmware::power_up() {
  SharedState& state = parts().state;
  SFS_ASSIGN(std::unique_ptr<LogBlockFtl> ftl,
             LogBlockFtl::make(parts().geometry, 0, nand(), state.now));
  const int error = ftl->recover(parts().image.trims(), parts().read_only);
  if (error != 0 && powered())
    return Error{error, "log-block FTL: spare areas that no power cut explains"};
  state.ftl[kLogBlockSpareAreasRead] = nand().spares_read();
  take_over(std::move(ftl));
  return {};
}

int LogBlockFirmware::write(Lpn first, uint32_t count, uint16_t stream, uint16_t vstream,
                            const std::byte* data) {
  const int error = NandFirmware::write(first, count, stream, vstream, data);
  const LogBlockFtl::Merges& since = ftl().merges();
  FtlCounts& counts = parts().state.ftl;
  counts[kMergesSwitched] = before_[kMergesSwitched] + since.switched;
  counts[kMergesPartial] = before_[kMergesPartial] + since.partial;
  counts[kMergesFull] = before_[kMergesFull] + since.full;
  return error;
}

void LogBlockFirmware::trim(Lpn page) {
  if (!powered()) return;
  std::atomic_ref(parts().image.trims()[page])
      .store(ftl().take_sequence(), std::memory_order_release);
  NandFirmware::trim(page);
}

}  // namespace streamfs::ssd
