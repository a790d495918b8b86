#include "fuse-fs/meta/used_pages.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/page_set.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr std::array kSnapshotRegions{RegionKind::kBlockBitmap, RegionKind::kUntrimmed,
                                      RegionKind::kVStreams, RegionKind::kHeapMap,
                                      RegionKind::kHeap};
constexpr uint64_t kStride = pmem::PageSet::kBits * kUnitSize;
static_assert(kUnitSize == pmem::PageSet::kPageBytes);

// Reads word by word, because other threads may be storing.
bool all_zero(const pmem::Region& region, uint64_t page) {
  for (uint64_t at = page; at < page + kUnitSize; at += kWordSize) {
    if (region.load(at) != 0) return false;
  }
  return true;
}

// Adds the used pages of a region. Reads only pages for which `may_hold(offset, length)` is true;
// it is asked about many pages at once before it is asked about each.
template <typename MayHold>
void add_used(const pmem::Region& region, const Geometry& geometry, RegionKind kind,
              const MayHold& may_hold, std::vector<uint64_t>& pages) {
  const uint64_t bytes = geometry.region_bytes(kind);
  for (uint64_t first = 0; first < bytes; first += kStride) {
    const uint64_t length = std::min(kStride, bytes - first);
    const uint64_t offset = geometry.region_offset(kind, first);
    const bool together =
        geometry.region_offset(kind, first + length - kUnitSize) == offset + length - kUnitSize;
    if (together && !may_hold(offset, length)) continue;
    for (uint64_t at = first; at < first + length; at += kUnitSize) {
      const uint64_t page = geometry.region_offset(kind, at);
      if (may_hold(page, kUnitSize) && !all_zero(region, page)) pages.push_back(page);
    }
  }
}

template <typename MayHold>
std::vector<uint64_t> used_of(const pmem::Region& region, const Geometry& geometry,
                              SnapshotScope scope, const MayHold& may_hold) {
  std::vector<uint64_t> pages;
  for (const RegionKind kind : kSnapshotRegions) add_used(region, geometry, kind, may_hold, pages);
  if (scope == SnapshotScope::kWithChecksums)
    add_used(region, geometry, RegionKind::kChecksums, may_hold, pages);
  return pages;
}

}  // namespace

std::vector<uint64_t> used_pages(const pmem::Region& region, const Geometry& geometry,
                                 SnapshotScope scope) {
  return used_of(region, geometry, scope, [](uint64_t, uint64_t) { return true; });
}

std::vector<uint64_t> UsedPages::look(const Geometry& geometry) {
  constexpr SnapshotScope kScope = SnapshotScope::kWithoutChecksums;
  if (used_at_first_look_) {
    return used_of(region_, geometry, kScope, [this](uint64_t offset, uint64_t length) {
      return used_at_first_look_->may_have(offset, length) ||
             region_.may_have_changed(offset, length);
    });
  }
  std::vector<uint64_t> pages = used_pages(region_, geometry, kScope);
  used_at_first_look_.emplace(region_.size());
  for (const uint64_t page : pages) used_at_first_look_->add(page);
  return pages;
}

}  // namespace streamfs::meta
