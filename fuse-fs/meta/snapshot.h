// Writes fuzzy snapshots of META to the data device, and reads them for a restore.
// Thread safety: the caller lets one snapshot be written at a time; META may change meanwhile.
// After a crash: an area has a valid header only if every page under that header is durable. The
// header is cleared and flushed before the first page changes, and the new header is written last.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/used_pages.h"
#include "pmem/region.h"

namespace streamfs::meta {

// Clears the header of the area that this generation belongs to, and flushes. No restore uses the
// area until finish_snapshot(). Every write of pages must come after it.
Result<void> clear_snapshot(const DataLabel& label, uint64_t generation, LogDevice& device);

// Writes these pages and their index to the area of the header's generation, without a flush.
// Returns the header, filled in. Requires: clear_snapshot() of that generation.
// Errors: ENOSPC, META outgrew the area; EIO, pages of META are lost.
Result<SnapshotHeader> write_snapshot_pages(const pmem::Region& region, const Geometry& geometry,
                                            const DataLabel& label, SnapshotHeader header,
                                            LogDevice& device, const std::vector<uint64_t>& pages);
// Flushes the pages and everything else that was written, then makes the header durable. From then
// on a restore begins with this snapshot.
Result<void> finish_snapshot(const SnapshotHeader& header, const DataLabel& label,
                             LogDevice& device);
// Does all three steps. Returns the bytes written.
Result<uint64_t> write_snapshot(const pmem::Region& region, const Geometry& geometry,
                                const DataLabel& label, const SnapshotHeader& header,
                                LogDevice& device,
                                SnapshotScope scope = SnapshotScope::kWithoutChecksums);
uint64_t snapshot_bytes(const SnapshotHeader& header);

// Returns the number of the first chunk of a log that begins anew or that mkfs makes. `generation`
// is that of the next snapshot. No other mount and no failed attempt has used a number of this run,
// so chunks that they left are never taken for part of this log.
//
//   63              32   31   30         0
//   | run of numbers | either | consecutive |
//
// `either`: the run was begun by a program that keeps the log since the older snapshot, in the
// order of sequences, so a restore may begin with either snapshot.
inline constexpr unsigned kRunShift = 32;
inline constexpr uint64_t kEitherSnapshot = uint64_t{1} << 31;
constexpr uint64_t first_number(const Superblock& super, uint64_t generation) {
  constexpr uint64_t kAttempts = 256;  // of one mount
  const uint64_t run = super.journal_seed + super.attachments * kAttempts + generation % kAttempts;
  return run << kRunShift | kEitherSnapshot;
}
// Returns whether the log after `older` goes on in the log after `newest`, so that either snapshot
// is enough.
constexpr bool share_a_log(const SnapshotHeader& older, const SnapshotHeader& newest) {
  return older.generation != 0 && older.generation + 1 == newest.generation &&
         older.first_chunk >> kRunShift == newest.first_chunk >> kRunShift &&
         older.first_chunk <= newest.first_chunk && (older.first_chunk & kEitherSnapshot) != 0;
}

// The valid headers of both areas. Generation 0: that area has none.
struct SnapshotHeaders {
  SnapshotHeader newest{}, older{};
  // Why an area has no valid header though it was written; empty if both are valid or cleared.
  std::string damage;
};
// Reads the headers of both areas. An unreadable header counts as damage. Errors: the device's, if
// the other header alone is not enough.
Result<SnapshotHeaders> read_snapshot_headers(const DataLabel& label, LogDevice& device);

// Reads every page. Errors: EIO, the index or a page is damaged or unreadable.
Result<void> verify_snapshot(const Geometry& geometry, const DataLabel& label,
                             const SnapshotHeader& header, LogDevice& device);

// Stores a snapshot into the region, which is zeroed first. Requires: verify_snapshot() succeeded.
Result<void> load_snapshot(pmem::Region& region, const Geometry& geometry, const DataLabel& label,
                           const SnapshotHeader& header, LogDevice& device);

}  // namespace streamfs::meta
