// Compares and equalises the copies of a META that is kept twice.
// Thread safety: any thread may call differing_words(), which only reads. mend_objects() and
// equalise_copies() store to the region: nothing else may use it.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "fuse-fs/meta/geometry.h"
#include "pmem/region.h"

namespace streamfs::meta {

// The regions that have no checksums and must be equal in all copies. (Data checksums may differ,
// because 0 is always right.)
inline constexpr std::array<std::pair<RegionKind, const char*>, 4> kMaps{{
    {RegionKind::kBlockBitmap, "the block bitmap"},
    {RegionKind::kUntrimmed, "the untrimmed bitmap"},
    {RegionKind::kHeapMap, "the heap map"},
    {RegionKind::kVStreams, "the vStreams"},
}};

// Returns how many words of a region differ between the copies; 0 if META is kept once. A word that
// is being stored at the time does not count.
uint64_t differing_words(const pmem::Region& region, const Geometry& geometry, RegionKind kind);

// Reads every object that has a checksum in every copy, and mends damaged copies from a whole one.
// An object that is damaged in all copies stays as it is.
void mend_objects(const pmem::Region& region, const Geometry& geometry);

// Makes the other copies equal to the first one, except for rings, watermark and superblocks.
void equalise_copies(const pmem::Region& region, const Geometry& geometry);

}  // namespace streamfs::meta
