// A second copy of META (pmem/mirror_region.h).
// Thread safety: none; nothing else uses either region.
#pragma once

#include "base/result.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::meta {

// Makes `region` a copy of `from`, the journal's rings included, with this superblock. `from` is
// only read. Requires: both regions have super.meta_size bytes. Errors: those of Region::sync().
// After a crash: `region` is marked unfinished until it gets its superblocks, which come last.
Result<void> make_copy(const pmem::Region& from, pmem::Region& region, Superblock super);
bool is_unfinished_copy(const pmem::Region& region);

}  // namespace streamfs::meta
