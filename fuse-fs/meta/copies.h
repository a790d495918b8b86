// The copies of a META that is kept twice, held against each other where no checksum says which is
// right. Thread safety: reads only, any thread; equalise_copies(): nobody else uses the region.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "fuse-fs/meta/geometry.h"
#include "pmem/region.h"

namespace streamfs::meta {

// What has no checksums, and is never different by law. (Data checksums may be: 0 is always right.)
inline constexpr std::array<std::pair<RegionKind, const char*>, 4> kMaps{{
    {RegionKind::kBlockBitmap, "the block bitmap"},
    {RegionKind::kUntrimmed, "the untrimmed bitmap"},
    {RegionKind::kHeapMap, "the heap map"},
    {RegionKind::kVStreams, "the vStreams"},
}};

// 0 where META is kept once. A word that is being stored meanwhile does not count.
uint64_t differing_words(const pmem::Region& region, const Geometry& geometry, RegionKind kind);

// Looks at every object with a checksum in every copy, and mends what one copy has whole. What is
// damaged in all of them stays.
void mend_objects(const pmem::Region& region, const Geometry& geometry);

// Makes the others hold what the first copy does, all but rings, watermark and superblocks.
void equalise_copies(const pmem::Region& region, const Geometry& geometry);

}  // namespace streamfs::meta
