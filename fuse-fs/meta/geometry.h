// Computes the places of objects in META from the superblock's segment lists, and checks every
// index.
//
// A geometry only grows: objects stay where they are, and an index that is valid stays valid.
// Thread safety: any thread; one extend() at a time, beside all readers. A reader sees the old or
// the new superblock whole. The superblock that super() returns lives as long as the geometry.
#pragma once

#include <atomic>
#include <forward_list>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::meta {

// Returns the length of a region: the sum of its segments.
uint64_t region_bytes(const Superblock& super, RegionKind kind);
// Returns the length of the intent log; 0: there is none.
uint64_t intent_log_bytes(const Superblock& super);
// Returns the bytes behind the journal's rings: the intent log, or the room that a disabled one
// left.
uint64_t spare_ring_bytes(const Superblock& super);

class Geometry {
 public:
  Geometry() : Geometry(Superblock{}) {}
  Geometry(const Geometry& other) : Geometry(other.super()) {}
  Geometry& operator=(const Geometry& other);
  // Errors: EINVAL, a segment lies outside META, overlaps another or is too small.
  static Result<Geometry> from(const Superblock& super);
  // Takes over a larger superblock. Requires: from() accepts it, and nothing in it has moved.
  void extend(const Superblock& larger);

  const Superblock& super() const { return *super_.load(std::memory_order_acquire); }
  uint64_t meta_size() const { return super().meta_size; }
  uint64_t data_blocks() const { return super().data_blocks; }
  bool checksums() const { return (super().features & kFeatureChecksums) != 0; }
  bool meta_log() const { return (super().features & kFeatureMetaLog) != 0; }

  uint64_t region_bytes(RegionKind kind) const { return meta::region_bytes(super(), kind); }
  // Returns the META offset of byte `at` of a region. Asserts `at` < region_bytes().
  uint64_t region_offset(RegionKind kind, uint64_t at) const;
  uint64_t ring_offset(uint32_t ring) const;
  // The intent log's segments follow the journal's rings. Each has kRingSize bytes.
  uint64_t intent_segments() const;
  uint64_t intent_offset(uint64_t segment) const;
  uint64_t bitmap_word(RegionKind bitmap, uint64_t word) const;
  uint64_t checksum_offset(BlockNo block) const;

  uint64_t heap_units() const { return region_bytes(RegionKind::kHeap) / kUnitSize; }
  uint64_t unit_offset(uint64_t unit) const {
    return region_offset(RegionKind::kHeap, unit * kUnitSize);
  }
  // Returns which byte of a region is at a META offset. nullopt: the offset is outside the region.
  std::optional<uint64_t> region_byte(RegionKind kind, uint64_t offset) const;
  // Returns the heap unit of a META offset. nullopt: the offset is outside the heap.
  std::optional<uint64_t> unit_of(uint64_t offset) const;

  // Blocks of the label and of the metadata log are reserved: no file ever has one. The superblock
  // alone says which they are; allocations ignore their bits in the block bitmap. All other blocks
  // are room for data.
  bool valid_block(uint64_t block) const { return valid_blocks(block, 1); }
  // Returns whether all `count` blocks from `first` on are room for data.
  bool valid_blocks(uint64_t first, uint64_t count) const;
  // Returns the bits of a bitmap word that are reserved or lie behind the last block.
  uint64_t reserved_in(uint64_t word) const;
  uint64_t reserved_blocks() const;
  // Returns whether patches, masks and bodies of a journal record may change these bytes: the heap,
  // the heap map and the vStreams. (Runs change the block bitmaps.)
  bool journalable(uint64_t offset, uint64_t length) const;

 private:
  explicit Geometry(const Superblock& super);
  std::forward_list<Superblock> versions_;  // newest first; readers may be using any of them
  std::atomic<const Superblock*> super_;
};

uint64_t pack_time(int64_t seconds, uint32_t nanoseconds);  // clamped to the representable range

}  // namespace streamfs::meta
