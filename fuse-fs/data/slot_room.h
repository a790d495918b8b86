// Finds room in META for the extents that a preallocation adds, or a write into preallocated
// blocks. Thread safety and crashes: see meta_units.h.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "fuse-fs/data/core.h"
#include "fuse-fs/meta/engine.h"

namespace streamfs::data {

// As Engine::slot_room(). Before it returns ENOSPC, it frees the units of removed files and grows
// META.
Result<meta::SlotRoom> slot_room(Core& core, uint64_t slots);

}  // namespace streamfs::data
