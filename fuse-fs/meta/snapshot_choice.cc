#include "fuse-fs/meta/snapshot_choice.h"

#include <cstdint>
#include <string>

#include "base/result.h"
#include "fuse-fs/meta/log_reader.h"
#include "fuse-fs/meta/snapshot.h"

namespace streamfs::meta {
namespace {

// Returns whether the log after `older` has, in whole groups, every record that `newest` promises.
Result<bool> leads_to(const SnapshotHeader& older, const SnapshotHeader& newest,
                      const DataLabel& label, LogDevice& device) {
  if (!share_a_log(older, newest)) return false;
  LogReader chunks(label, older, device);
  uint64_t next_number = older.first_chunk;
  for (;; ++next_number) {
    SFS_ASSIGN(const auto chunk, chunks.next());
    if (!chunk) break;
  }
  return chunks.whole_through() >= newest.sequence && next_number >= newest.first_chunk;
}

std::string name_of(const SnapshotHeader& snapshot) {
  return "snapshot " + std::to_string(snapshot.generation);
}

uint64_t next_after(const SnapshotHeader& newest, const SnapshotHeader& chosen) {
  const uint64_t next = newest.generation + 1;
  return next % 2 == chosen.generation % 2 ? next + 1 : next;
}

}  // namespace

Result<SnapshotChoice> choose_snapshot(const Geometry& geometry, const DataLabel& label,
                                       LogDevice& device) {
  SFS_ASSIGN(const SnapshotHeaders headers, read_snapshot_headers(label, device));
  const SnapshotHeader &newest = headers.newest, &older = headers.older;
  SnapshotChoice choice;
  choice.damage = headers.damage;
  choice.next_generation = newest.generation + 1;
  choice.found_header = newest.generation != 0;
  if (!choice.found_header) return choice;
  const Result<void> whole = verify_snapshot(geometry, label, newest, device);
  if (whole.ok()) {
    choice.snapshot = newest;
    return choice;
  }
  choice.damage = name_of(newest) + ": " + whole.error().message();
  if (older.generation == 0) return choice;
  if (const auto other = verify_snapshot(geometry, label, older, device); !other.ok()) {
    choice.damage += "; " + name_of(older) + ": " + other.error().message();
    return choice;
  }
  SFS_ASSIGN(const bool leads, leads_to(older, newest, label, device));
  if (!leads) {
    choice.damage += "; the log after " + name_of(older) + " does not reach it";
    return choice;
  }
  choice.snapshot = older;
  choice.next_generation = next_after(newest, older);
  return choice;
}

}  // namespace streamfs::meta
