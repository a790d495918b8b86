#include "fuse-fs/data/slot_room.h"

#include <cerrno>
#include <cstdint>

#include "base/result.h"

namespace streamfs::data {

Result<meta::SlotRoom> slot_room(Core& core, uint64_t slots) {
  auto room = core.engine.slot_room(slots);
  if (room || room.error().code != ENOSPC) return room;
  core.free_orphans();
  return core.engine.slot_room(slots);
}

}  // namespace streamfs::data
