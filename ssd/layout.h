// The image file of an emulated SSD.
//
//   offset            content
//   0                 ImageHeader (one page, never changes after create, checksummed)
//   4096              SharedState: counters, baseline of the last reset (shared mapping)
//   block_offset      BlockRecord × blocks: the controller's own table, kept in order by it
//   trim_offset       uint64_t × map units: the sequence at which one was last trimmed
//   spare_offset      SpareEntry × map units of flash
//   data_offset       the flash: map unit p at data_offset + p × map unit
//
// Where is logical page (map unit) l? The programmed place whose spare entry says l with the
// largest sequence, if that is above trim[l]; else l is not mapped. What is programmed, the spare
// area alone says (media/spare_scan.h): an entry counts if its checksum is right and its erase
// count is its block's. So each change of state is one small store, and an end between any two
// leaves either the state before or the state after. Without power-loss protection, entries of
// pages that are still in the buffer carry a checksum xor kBufferedMark, and count as erased until
// their wordline is programmed.
//
// An erase stores "erasing" first and {erases + 1} last, and leaves old spare entries behind, which
// the erase count hides. A torn wordline (the power went while it was programmed) stays in its
// block until the next erase; the block is "doubtful", and its data is checked at every open.
//
//   in use ──power cut in a program──▶ doubtful     in use, doubtful ──program failed──▶ failed
//   in use, doubtful ──erase begins──▶ erasing      failed ──its pages are elsewhere──▶ retired
//   erasing ──erase ends──▶ in use, erases + 1      erasing ──erase failed──▶ retired
//
// The image promises to survive the death of its process, not of the machine: nothing is synced
// while it is open. Numbers are little-endian.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/types.h"
#include "ssd/counters.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

inline constexpr uint64_t kImageMagic = 0x3144535345465453;  // "STFESSD1"
inline constexpr uint32_t kImageVersion = 3;
inline constexpr uint64_t kSharedStateOffset = kPageBytes;

struct ImageHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint32_t user_pages, pages_per_block, blocks;
  uint16_t streams, low_water;
  uint8_t gc_mode, plp, cell, map_unit_pages;
  uint32_t bad_blocks;  // from the factory; which ones, the block table says
  uint16_t channels, chips, dies, planes;
  uint32_t wordlines;
  uint32_t program_failures_per_billion, erase_failures_per_billion;
  uint32_t ftl;  // FtlKind
  uint64_t failure_seed;
  uint64_t block_offset, trim_offset, spare_offset, data_offset, file_bytes;
  uint8_t uuid[16];
  uint32_t reserved2;
  uint32_t checksum;  // CRC32C of everything before it
};
static_assert(sizeof(ImageHeader) == 136 && std::has_unique_object_representations_v<ImageHeader>);

// `version` is odd while the holder changes `now` or `live`; a reader tries again.
struct SharedState {
  uint64_t version;
  uint64_t baseline_version;  // odd while a reset copies `now`
  uint64_t damaged_pages;     // spare entries that were not whole at the last open
  LiveCounts live;
  Counters now;
  Counters baseline;
};
static_assert(std::is_trivially_copyable_v<SharedState>);

// Flags of BlockRecord::state.
inline constexpr uint32_t kBlockErasing = 1;  // the power may have gone half way: erase it again
inline constexpr uint32_t kBlockDoubtful =
    2;  // has a torn wordline: data may not fit its spare entry
inline constexpr uint32_t kBlockFailed = 4;   // is programmed no more; its pages count until moved
inline constexpr uint32_t kBlockRetired = 8;  // a bad block, nothing in it counts

struct BlockRecord {
  uint32_t state;  // one 8-byte store together with erases
  uint32_t erases;
  uint32_t frontier;  // stored before the first page
  uint32_t reserved;
};
static_assert(sizeof(BlockRecord) == 16);

inline constexpr uint32_t kBufferedMark = 0x42554646;  // "BUFF"

struct SpareEntry {
  uint64_t sequence;
  uint64_t written_at;  // the device's count of host pages when the host wrote it
  uint32_t lpn;         // kNoPage: padding
  uint16_t vstream, pstream;
  uint32_t erases;         // of its block when it was programmed
  uint32_t data_checksum;  // CRC32C of the map unit; 0 for padding
  uint32_t reserved;
  uint32_t checksum;  // CRC32C of everything before it
};
static_assert(sizeof(SpareEntry) == 40 && std::has_unique_object_representations_v<SpareEntry>);

struct ImageOffsets {
  uint64_t block, trim, spare, data, file_bytes;
};

// An eMMC's log of global contexts: two halves, whole blocks of flash. Each holds a context with
// all of the map and as much again of changes.
inline uint64_t context_half_pages(const Geometry& geometry) {
  if (geometry.ftl != FtlKind::kEmmc) return 0;
  const uint64_t map = div_round_up(uint64_t{geometry.user_pages} * sizeof(uint32_t), kPageBytes);
  const uint64_t blocks = div_round_up(uint64_t{geometry.blocks} * sizeof(uint32_t), kPageBytes);
  return round_up(3 * (map + blocks) + 64, geometry.pages_per_block);
}

inline ImageOffsets image_offsets(const Geometry& geometry) {
  const uint64_t block = kSharedStateOffset + round_up(sizeof(SharedState), kPageBytes);
  const uint64_t trim = block + round_up(geometry.blocks * sizeof(BlockRecord), kPageBytes);
  const Geometry units = geometry.in_map_units();
  const uint64_t spare = trim + round_up(units.user_pages * sizeof(uint64_t), kPageBytes);
  // The flash starts on a whole megabyte, for the page cache's large folios.
  const uint64_t data =
      round_up(spare + units.physical_pages() * sizeof(SpareEntry), uint64_t{1} << 20);
  const uint64_t pages = geometry.physical_pages() + 2 * context_half_pages(geometry);
  return {block, trim, spare, data, data + pages * kPageBytes};
}

}  // namespace streamfs::ssd
