// Where things are in META: the superblock's segment lists as arithmetic, every index checked.
//
// A geometry only grows: what lies somewhere stays there, and every index that was good stays good.
// Thread safety: any thread; extend() beside all readers, one at a time. A reader sees the old or
// the new superblock whole, and what super() refers to lives as long as the geometry.
// Crash: memory only.
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

// The length of a region: of all its segments.
uint64_t region_bytes(const Superblock& super, RegionKind kind);

class Geometry {
 public:
  Geometry() : Geometry(Superblock{}) {}
  Geometry(const Geometry& other) : Geometry(other.super()) {}
  Geometry& operator=(const Geometry& other);
  // Errors: EINVAL when a segment lies outside META, overlaps another or is too small.
  static Result<Geometry> from(const Superblock& super);
  // From now on this larger superblock, which from() accepts: nothing in it may have moved.
  void extend(const Superblock& larger);

  const Superblock& super() const { return *super_.load(std::memory_order_acquire); }
  uint64_t meta_size() const { return super().meta_size; }
  uint64_t data_blocks() const { return super().data_blocks; }
  bool checksums() const { return (super().features & kFeatureChecksums) != 0; }
  bool meta_log() const { return (super().features & kFeatureMetaLog) != 0; }

  uint64_t region_bytes(RegionKind kind) const { return meta::region_bytes(super(), kind); }
  // META offset of byte `at` of a region; asserts at < region_bytes.
  uint64_t region_offset(RegionKind kind, uint64_t at) const;
  uint64_t ring_offset(uint32_t ring) const;
  uint64_t bitmap_word(RegionKind bitmap, uint64_t word) const;
  uint64_t checksum_offset(BlockNo block) const;

  uint64_t heap_units() const { return region_bytes(RegionKind::kHeap) / kUnitSize; }
  uint64_t unit_offset(uint64_t unit) const {
    return region_offset(RegionKind::kHeap, unit * kUnitSize);
  }
  // Which byte of a region is at a META offset; nothing outside it.
  std::optional<uint64_t> region_byte(RegionKind kind, uint64_t offset) const;
  // Unit index of a META offset inside the heap, else nothing.
  std::optional<uint64_t> unit_of(uint64_t offset) const;

  // Blocks of the label and the metadata log are reserved, by the superblock alone; no file ever
  // has one, and what the bitmap says of them means nothing. The rest is room for data.
  bool valid_block(uint64_t block) const { return valid_blocks(block, 1); }
  // True when all `count` blocks from `first` on are room for data.
  bool valid_blocks(uint64_t first, uint64_t count) const;
  // Bits of a bitmap word that are reserved or lie behind the last block.
  uint64_t reserved_in(uint64_t word) const;
  uint64_t reserved_blocks() const;
  // True where a journal record may patch: anything but superblocks, watermark and rings.
  bool journalable(uint64_t offset, uint64_t length) const;

 private:
  explicit Geometry(const Superblock& super);
  std::forward_list<Superblock> versions_;  // newest first; readers may be using any of them
  std::atomic<const Superblock*> super_;
};

uint64_t pack_time(int64_t seconds, uint32_t nanoseconds);  // clamped to the representable range

}  // namespace streamfs::meta
