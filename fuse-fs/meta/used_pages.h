// Finds the pages of META that hold anything. A snapshot consists of them.
// Thread safety: META may change meanwhile. A page that changes from zeroes during the call may be
// left out; its change is then in the log after the snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fuse-fs/meta/geometry.h"
#include "pmem/page_set.h"
#include "pmem/region.h"

namespace streamfs::meta {

// A snapshot of the metadata log leaves the checksum array out; restored data is then accepted as
// read.
enum class SnapshotScope : uint8_t { kWithoutChecksums, kWithChecksums };

// Returns the META offsets of the pages in use. Reads all of META.
std::vector<uint64_t> used_pages(const pmem::Region& region, const Geometry& geometry,
                                 SnapshotScope scope);

// Finds the used pages again for each snapshot, at less cost than used_pages(): to read gigabytes
// takes longer than most snapshots do. The first look() reads all of META. Later ones read only the
// pages that held something then or may have changed since this object was made.
// Thread safety: one look() at a time.
class UsedPages {
 public:
  explicit UsedPages(pmem::Region& region) : region_(region) { region.note_changes(); }
  std::vector<uint64_t> look(const Geometry& geometry);  // kWithoutChecksums

 private:
  const pmem::Region& region_;
  std::optional<pmem::PageSet> used_at_first_look_;  // empty until the first look()
};

}  // namespace streamfs::meta
