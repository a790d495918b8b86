#include "fuse-fs/data/slot_room.h"

#include <cstdint>

#include "base/result.h"
#include "fuse-fs/data/meta_units.h"

namespace streamfs::data {

Result<meta::SlotRoom> slot_room(Core& core, uint64_t slots) {
  return with_meta_units(core, [&] { return core.engine.slot_room(slots); });
}

}  // namespace streamfs::data
