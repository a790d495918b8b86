#include "ssd/ftl/hybrid_firmware.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "ssd/background.h"
#include "ssd/ftl/hybrid.h"
#include "ssd/ftl_counts.h"
#include "ssd/idle_work.h"
#include "ssd/layout.h"
#include "ssd/media/image_memory.h"

namespace streamfs::ssd {

Result<void> HybridFirmware::power_up() {
  SharedState& state = parts().state;
  SFS_ASSIGN(memory_, map_memory(parts().image.fd(), parts().geometry, parts().read_only));
  SFS_ASSIGN(std::unique_ptr<HybridFtl> ftl,
             HybridFtl::open(parts().geometry, *memory_, nand(), state.now));
  state.ftl[kWordsRead] = ftl->words_read();
  state.ftl[kHybridSpareAreasRead] = nand().spares_read();
  take_over(std::move(ftl));
  return {};
}

IdleStep HybridFirmware::idle_step(const IdleLimits& limits, uint32_t most) {
  if (!powered()) return IdleStep::kNothing;
  const Urgency urgency = urgency_of(parts().geometry, free_blocks(), limits);
  const bool collected = collect_step(ftl(), parts().geometry, limits, urgency, most);
  count_streams();
  return collected ? IdleStep::kCollected : IdleStep::kNothing;
}

}  // namespace streamfs::ssd
