// Which pages of META hold anything: what a snapshot of it has.
// Thread safety: META may change meanwhile. Crash: memory only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fuse-fs/meta/geometry.h"
#include "pmem/page_set.h"
#include "pmem/region.h"

namespace streamfs::meta {

// What a restore can do without: a log's snapshot leaves the checksum array out, and so what is
// restored is accepted as read.
enum class SnapshotScope : uint8_t { kWithoutChecksums, kWithChecksums };

// Offsets in META. Looks at all of it.
std::vector<uint64_t> used_pages(const pmem::Region& region, const Geometry& geometry,
                                 SnapshotScope scope);

// For who asks again and again, as looking at gigabytes costs more than most snapshots. The first
// look is at all of it; the others at what held something then, or was changed since this was made.
// One look at a time.
class UsedPages {
 public:
  explicit UsedPages(pmem::Region& region) : region_(region) { region.note_changes(); }
  std::vector<uint64_t> look(const Geometry& geometry);  // kWithoutChecksums

 private:
  const pmem::Region& region_;
  std::optional<pmem::PageSet> used_at_first_look_;  // empty until the first look()
};

}  // namespace streamfs::meta
