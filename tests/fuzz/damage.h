// Damage as an input says it, and the checksums put right again: without those a fuzzer would never
// get past the first one.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pmem/region.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/input.h"

namespace streamfs::fuzz {

enum class DamageKind : uint8_t {
  kSetLive,   // live word `where` becomes `value`
  kFlipLive,  // its bits in `value` flip
  kCopyLive,  // it becomes live word `value`
  kSetByte,   // its byte `argument` becomes `value`
  kSetAny,    // word `where`, counted from 64 KiB × `argument` on, becomes `value`
  kUnitKind,  // heap unit `where` is of kind `value`
  kSuper,     // word `where` of both superblocks becomes `value`
  kCopyCell,  // 256 bytes of cell `where` of the heap are those of cell `value`
  kCount,
};

// Offsets of the words that changed.
std::vector<uint64_t> apply_damage(pmem::Region& region, const Image& image,
                                   std::span<const Item> items);

// Makes every checksum right of an object that holds one of these words: superblocks, inodes,
// directory slots, extents, blobs, journal records.
void fix_checksums(pmem::Region& region, const meta::Geometry& geometry,
                   std::span<const uint64_t> changed);

}  // namespace streamfs::fuzz
