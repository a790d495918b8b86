// The two copies of META's superblock.
// Thread safety: none; one caller at a time.
// After a crash: one copy at least is whole, because they are stored one after the other.
#pragma once

#include "base/result.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::meta {

// Returns the valid superblock with the larger generation. If `repair`, replaces the other copy
// where that is damaged or older.
// Errors: EINVAL, no streamfs META (foreign or empty), or smaller than it was formatted;
// EMEDIUMTYPE, another format version; EIO, no copy is whole and one at least has the magic.
Result<Superblock> load_superblock(pmem::Region& region, bool repair);
// Stores both copies, one after the other, with generation super.generation + 1. The caller's value
// keeps its generation. Never fails.
Result<void> store_superblock(pmem::Region& region, Superblock super);

}  // namespace streamfs::meta
