// Fuzzy snapshots of META on the data device, and what a restore reads back.
// Thread safety: the caller lets one snapshot be written at a time; META may change meanwhile.
// What a crash leaves: the area being written keeps its old header, whose generation is older than
// that of the other, whole area, until the new one is written and flushed, last.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/metadata_log.h"
#include "pmem/region.h"

namespace streamfs::meta {

// What a restore can do without: a log's snapshot leaves the checksum array out, and so what is
// restored is accepted as read.
enum class SnapshotScope : uint8_t { kWithoutChecksums, kWithChecksums };

// Fills in the rest of `header`, writes pages, index and header to the area of its generation, and
// flushes. Returns the bytes written. ENOSPC if META outgrew the area.
Result<uint64_t> write_snapshot(const pmem::Region& region, const Geometry& geometry,
                                const DataLabel& label, SnapshotHeader header, LogDevice& device,
                                SnapshotScope scope = SnapshotScope::kWithoutChecksums);

// 0 when there is none yet.
Result<uint64_t> newest_snapshot_generation(const DataLabel& label, LogDevice& device);

// The newest whole snapshot stored into the region (zeroed before). ENODATA when there is none, EIO
// where it is damaged: the region is untouched then.
Result<SnapshotHeader> load_snapshot(pmem::Region& region, const Geometry& geometry,
                                     const DataLabel& label, LogDevice& device);

}  // namespace streamfs::meta
