#include "ssd/ftl/vstream/firmware.h"

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ssd/ftl/firmware.h"
#include "ssd/ftl/page_map_firmware.h"
#include "ssd/ftl/vstream/lifetimes.h"
#include "ssd/ftl/vstream/stream_map.h"
#include "ssd/ftl_counts.h"
#include "ssd/geometry.h"

namespace streamfs::ssd::vstream {

Result<void> VStreamFirmware::power_up() {
  SFS_TRY(PageMapFirmware::power_up());
  count_vstreams();
  return {};
}

void VStreamFirmware::count_vstreams() {
  parts().state.ftl[kLiveVStreams] = media().map().lifetimes().live_vstreams();
}

void VStreamFirmware::dies(Lpn page, uint64_t clock) {
  if (const Ppn at = location(page); at != kNoPage) media().map().lifetimes().dies(at, clock);
}

int VStreamFirmware::write(Lpn first, uint32_t count, uint16_t /*stream*/, uint16_t vstream,
                           const std::byte* data) {
  StreamMap& map = media().map();
  for (uint32_t i = 0; i < count; ++i) dies(first + i, clock() + i);
  if (map.advance(clock())) {
    ++parts().state.ftl[kRemaps];
    count_vstreams();
  }
  return PageMapFirmware::write(first, count, map.of(slot_of(vstream)).value, vstream, data);
}

void VStreamFirmware::trim(Lpn page) {
  dies(page, clock());
  PageMapFirmware::trim(page);
}

}  // namespace streamfs::ssd::vstream
