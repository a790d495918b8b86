// Where things are in META: the superblock's segment lists as arithmetic, every index checked.
// Thread safety: immutable after construction (grow() replaces it under the filesystem's freeze).
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::meta {

class Geometry {
 public:
  // Errors: EINVAL when a segment lies outside META, overlaps another or is too small.
  static Result<Geometry> from(const Superblock& super);

  const Superblock& super() const { return super_; }
  uint64_t meta_size() const { return super_.meta_size; }
  uint64_t data_blocks() const { return super_.data_blocks; }
  bool checksums() const { return (super_.features & kFeatureChecksums) != 0; }
  bool meta_log() const { return (super_.features & kFeatureMetaLog) != 0; }

  uint64_t region_bytes(RegionKind kind) const;
  // META offset of byte `at` of a region; asserts at < region_bytes.
  uint64_t region_offset(RegionKind kind, uint64_t at) const;
  uint64_t ring_offset(uint32_t ring) const;
  uint64_t bitmap_word(RegionKind bitmap, uint64_t word) const;
  uint64_t checksum_offset(BlockNo block) const;

  uint64_t heap_units() const { return region_bytes(RegionKind::kHeap) / kUnitSize; }
  uint64_t unit_offset(uint64_t unit) const {
    return region_offset(RegionKind::kHeap, unit * kUnitSize);
  }
  // Unit index of a META offset inside the heap, else nothing.
  std::optional<uint64_t> unit_of(uint64_t offset) const;
  bool valid_block(uint64_t block) const {
    return block >= super_.first_data_block && block < super_.data_blocks;
  }
  // True where a journal record may patch: anything but superblocks, watermark and rings.
  bool journalable(uint64_t offset, uint64_t length) const;

 private:
  Superblock super_{};
};

uint64_t pack_time(int64_t seconds, uint32_t nanoseconds);  // clamped to the representable range

}  // namespace streamfs::meta
