// Fuzzy snapshots of META on the data device, and what a restore reads back.
// Thread safety: the caller lets one snapshot be written at a time; META may change meanwhile.
// What a crash leaves: the area being written keeps its old header, whose generation is older than
// that of the other, whole area, until the new one is written and flushed, last.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/used_pages.h"
#include "pmem/region.h"

namespace streamfs::meta {

// Writes these pages and their index to the area of the header's generation; returns the header,
// filled in.
// ENOSPC if META outgrew the area.
Result<SnapshotHeader> write_snapshot_pages(const pmem::Region& region, const Geometry& geometry,
                                            const DataLabel& label, SnapshotHeader header,
                                            LogDevice& device, const std::vector<uint64_t>& pages);
// Flushes them, and what else was written, and makes the header durable: a restore begins here.
Result<void> finish_snapshot(const SnapshotHeader& header, const DataLabel& label,
                             LogDevice& device);
// Both. Returns the bytes written.
Result<uint64_t> write_snapshot(const pmem::Region& region, const Geometry& geometry,
                                const DataLabel& label, const SnapshotHeader& header,
                                LogDevice& device,
                                SnapshotScope scope = SnapshotScope::kWithoutChecksums);
uint64_t snapshot_bytes(const SnapshotHeader& header);

// From where on a mount numbers its chunks that begins the log anew, or mkfs, with this one the
// newest snapshot. Nobody else did, not even in vain: with other numbers what they left is no
// chunk that follows.
constexpr uint64_t first_number(const Superblock& super, uint64_t generation) {
  const uint64_t turn = super.journal_seed + super.attachments + generation;
  return turn << 32U;
}

// Generation 0 when there is none yet.
Result<SnapshotHeader> newest_snapshot(const DataLabel& label, LogDevice& device);

// The newest whole snapshot stored into the region (zeroed before). ENODATA when there is none, EIO
// where it is damaged: the region is untouched then.
Result<SnapshotHeader> load_snapshot(pmem::Region& region, const Geometry& geometry,
                                     const DataLabel& label, LogDevice& device);

}  // namespace streamfs::meta
