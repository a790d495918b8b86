#include "fuse-fs/meta/copies.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/blob/xattr.h"
#include "fuse-fs/meta/directory.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/mended.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr int kLooks = 3;  // a store reaches one copy after the other

bool differs(const pmem::Region& region, uint64_t offset) {
  for (int look = 0; look < kLooks; ++look) {
    if (region.alike(offset, kWordSize)) return false;
  }
  return true;
}

template <typename Visit>  // visit(offset, length) of each segment
void each_segment(const Geometry& geometry, RegionKind kind, Visit&& visit) {
  for (const Segment& segment : geometry.super().regions[static_cast<size_t>(kind)].segments) {
    if (segment.length > 0) visit(segment.offset, segment.length);
  }
}

void mend_header(const pmem::Region& region, const Geometry& geometry, uint64_t unit,
                 UnitKind kind) {
  const auto whole = [&](const pmem::Region& copy) -> Result<UnitHeader> {
    const UnitHeader header = read_header(copy, unit);
    const bool leads_on = header.next == 0 || geometry.unit_of(header.next).has_value();
    if (header.owner >> 56 != static_cast<uint64_t>(kind) || !leads_on) return Error{EIO};
    return header;
  };
  (void)read_mended(region, "a unit header", unit, Look::kAll, whole,
                    [](const auto&) { return sizeof(UnitHeader); });
}

void mend_inodes(const pmem::Region& region, uint64_t unit) {
  for (uint64_t i = 0; i < kInodesPerUnit; ++i)
    (void)find_inode(region, InodeId{unit / kCellSize + i}, Look::kAll);
}

void mend_entries(const pmem::Region& region, uint64_t unit) {
  for (uint32_t index = 0; index < kDirSlotsPerUnit;) {
    const Result<DirEntry> entry = decode_entry(region, unit, index, Look::kAll);
    index += entry.ok() ? entry->slots : 1;
  }
}

void mend_extents(const pmem::Region& region, const Geometry& geometry, uint64_t unit) {
  for (uint64_t i = 0; i < kExtentSlotsPerUnit; ++i)
    (void)read_extent(region, geometry, unit + sizeof(UnitHeader) + i * sizeof(ExtentSlot),
                      Look::kAll);
}

void mend_unit(const pmem::Region& region, const Geometry& geometry, uint64_t unit, UnitKind kind) {
  if (kind == UnitKind::kInodes) return mend_inodes(region, unit);
  if (kind == UnitKind::kFree || kind >= UnitKind::kDirty) return;
  mend_header(region, geometry, unit, kind);
  if (kind == UnitKind::kDirectory) mend_entries(region, unit);
  if (kind == UnitKind::kExtents) mend_extents(region, geometry, unit);
  if (kind == UnitKind::kBlob) (void)read_blob_unit(region, unit, Look::kAll);
}

}  // namespace

void mend_objects(const pmem::Region& region, const Geometry& geometry) {
  if (region.copies() == 1) return;
  for (uint64_t unit = 0; unit < geometry.heap_units(); ++unit) {
    UnitKind kind = read_unit_kind(region, geometry, unit);
    for (size_t copy = 1; copy < region.copies() && kind == UnitKind::kFree; ++copy)
      kind = read_unit_kind(region.copy(copy), geometry, unit);
    mend_unit(region, geometry, geometry.unit_offset(unit), kind);
  }
}

uint64_t differing_words(const pmem::Region& region, const Geometry& geometry, RegionKind kind) {
  uint64_t words = 0;
  each_segment(geometry, kind, [&](uint64_t offset, uint64_t length) {
    for (uint64_t page = offset; page < offset + length; page += kUnitSize) {
      if (region.alike(page, kUnitSize)) continue;
      for (uint64_t at = page; at < page + kUnitSize; at += kWordSize) words += differs(region, at);
    }
  });
  return words;
}

void equalise_copies(const pmem::Region& region, const Geometry& geometry) {
  for (uint32_t kind = 0; kind < static_cast<uint32_t>(RegionKind::kCount); ++kind) {
    if (static_cast<RegionKind>(kind) == RegionKind::kRings) continue;
    each_segment(geometry, static_cast<RegionKind>(kind),
                 [&](uint64_t offset, uint64_t length) { region.equalise(0, offset, length); });
  }
}

}  // namespace streamfs::meta
