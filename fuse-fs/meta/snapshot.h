// Fuzzy snapshots of META on the data device, and what a restore reads back.
// Thread safety: the caller lets one snapshot be written at a time; META may change meanwhile.
// What a crash leaves: the area being written is invalid until its header, written and flushed
// last; the other area is whole.
#pragma once

#include <optional>

#include "base/result.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/metadata_log.h"
#include "pmem/region.h"

namespace streamfs::meta {

// Fills in the rest of `header`, writes pages, index and header to the area of its generation, and
// flushes. Returns the bytes written. ENOSPC if META outgrew the area.
Result<uint64_t> write_snapshot(const pmem::Region& region, const Geometry& geometry,
                                const DataLabel& label, SnapshotHeader header, LogDevice& device);

// 0 when there is none yet.
Result<uint64_t> newest_snapshot_generation(const DataLabel& label, LogDevice& device);

// The newest whole snapshot stored into the region (zeroed before). ENODATA when there is none.
Result<SnapshotHeader> load_snapshot(pmem::Region& region, const Geometry& geometry,
                                     const DataLabel& label, LogDevice& device);

}  // namespace streamfs::meta
