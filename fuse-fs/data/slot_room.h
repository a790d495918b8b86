// Room for what preallocation and writes into preallocated blocks add to META.
// Thread safety: any thread. What a crash leaves: nothing.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "fuse-fs/data/core.h"
#include "fuse-fs/meta/engine.h"

namespace streamfs::data {

// As Engine::slot_room(); before it gives ENOSPC, what removed files hold of META is freed and META
// grows.
Result<meta::SlotRoom> slot_room(Core& core, uint64_t slots);

}  // namespace streamfs::data
