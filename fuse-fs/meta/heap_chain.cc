// Owners and chains of units. Damage in one copy of META is mended from another.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/mended.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

// Stores only the unit's own byte of the heap map, because other entries in the word may be
// changing.
void mend_unit_kind(pmem::Region& region, const Geometry& geometry, uint64_t unit, UnitKind kind) {
  bool damaged = false;
  for (size_t copy = 0; copy < region.copies(); ++copy) {
    damaged = damaged || read_unit_kind(region.copy(copy), geometry, unit) != kind;
  }
  if (!damaged) return;
  store_unit_kind(region, geometry, unit, kind);
  region.count_mended();
}

}  // namespace

// Returns whether this copy has a unit of this kind and owner at `offset`, by its heap map and by
// the unit's header.
bool Heap::copy_has_unit(const pmem::Region& copy, uint64_t offset, UnitKind kind,
                         InodeId owner) const {
  const std::optional<uint64_t> unit = store_.geometry.unit_of(offset);
  return unit && store_.geometry.unit_offset(*unit) == offset &&
         read_unit_kind(copy, store_.geometry, *unit) == kind &&
         read_header(copy, offset).owner == unit_owner(owner, kind);
}

bool Heap::is_unit(uint64_t offset, UnitKind kind, InodeId owner, Look look) const {
  const auto header = read_mended(
      store_.region, "a unit header", offset, look,
      [&](const pmem::Region& copy) -> Result<UnitHeader> {
        if (!copy_has_unit(copy, offset, kind, owner)) return Error{EIO};
        const UnitHeader found = read_header(copy, offset);
        if (found.next != 0 && !copy_has_unit(copy, found.next, kind, owner)) return Error{EIO};
        return found;
      },
      [](const auto&) { return sizeof(UnitHeader); });
  if (header.ok() && store_.region.copies() > 1)
    mend_unit_kind(store_.region, store_.geometry, unit_at(offset), kind);
  return header.ok() || copy_has_unit(store_.region, offset, kind, owner);
}

Result<std::vector<uint64_t>> Heap::chain(uint64_t first, UnitKind kind, InodeId owner,
                                          Look look) const {
  std::vector<uint64_t> units;
  for (uint64_t at = first; at != 0; at = read_header(store_.region, at).next) {
    if (!is_unit(at, kind, owner, look) || units.size() >= total()) {
      return Error{EIO, "broken chain of heap units"};
    }
    units.push_back(at);
  }
  return units;
}

// It is enough that any copy says so, because the inode has a checksum.
bool Heap::is_inode_slot(InodeId id) const {
  if (id.value >= store_.geometry.meta_size() / kCellSize) return false;
  const std::optional<uint64_t> unit = store_.geometry.unit_of(id.value * kCellSize);
  for (size_t copy = 0; unit && copy < store_.region.copies(); ++copy) {
    if (read_unit_kind(store_.region.copy(copy), store_.geometry, *unit) == UnitKind::kInodes)
      return true;
  }
  return false;
}

}  // namespace streamfs::meta
