// The image file of an emulated SSD.
//
//   offset            content
//   0                 ImageHeader (one page, never changes after create, checksummed)
//   4096              SharedState: counters, baseline of the last reset (shared mapping)
//   block_offset      BlockRecord × blocks: the controller's own table
//   trim_offset       uint64_t × map units: the sequence of each one's last trim
//   spare_offset      SpareEntry × map units of flash
//   data_offset       the flash: map unit p at data_offset + p × map unit; behind it, only in an
//                     eMMC, the two halves of its log of contexts (ftl/emmc/context_log.h)
//   memory            only of a hybrid FTL: its persistent memory (ftl/hybrid_layout.h)
//
// Logical page (map unit) l is at the programmed place whose spare entry has l and the largest
// sequence, if that is above trim[l]; else l is not mapped. The spare area alone defines what is
// programmed (media/spare_scan.h): an entry counts if its checksum is right and its erase count
// is its block's. Each change of state is therefore one small store, and a process death between
// two stores leaves the state before or after a change. Without power-loss protection, entries of
// pages in the buffer have their checksum xor kBufferedMark and count as erased until their
// wordline is programmed.
//
// An erase stores "erasing" first and {erases + 1} last. The erase count hides the old spare
// entries that it leaves. A torn wordline (a power cut during its program) stays in its block until
// the next erase; the block is "doubtful", and its data is checked at every open.
//
//   in use ──power cut in a program──▶ doubtful     in use, doubtful ──program failed──▶ failed
//   in use, doubtful ──erase begins──▶ erasing      failed ──its pages are elsewhere──▶ retired
//   erasing ──erase ends──▶ in use, erases + 1      erasing ──erase failed──▶ retired
//
// The hybrid and the log-block FTL (media/image_nand.h) find their pages by rules of their own. The
// log-block FTL's pages obey the sequence rule above, too; the hybrid FTL's map is in its memory.
// Their block records say which program was interrupted. The page may be torn; its spare entry then
// becomes one without a page before the next page of the block is programmed.
//
// After a crash: the image survives the death of its process, but not of the machine, because
// nothing is synced while it is open. Numbers are little-endian.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/types.h"
#include "ssd/counters.h"
#include "ssd/ftl/hybrid_layout.h"
#include "ssd/ftl_counts.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

inline constexpr uint32_t kImageVersion = 3;
inline constexpr uint64_t kSharedStateOffset = kPageBytes;

struct ImageHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint32_t user_pages, pages_per_block, blocks;
  uint16_t streams, low_water;
  uint8_t gc_mode, plp, cell, map_unit_pages;
  uint32_t bad_blocks;  // from the factory; the block table marks them
  uint16_t channels, chips, dies, planes;
  uint32_t wordlines;
  uint32_t program_failures_per_billion, erase_failures_per_billion;
  uint32_t ftl;  // FtlKind
  uint64_t failure_seed;
  uint64_t block_offset, trim_offset, spare_offset, data_offset, file_bytes;
  uint8_t uuid[16];
  uint32_t victim;    // VictimKind; 0 in images of programs that knew greedy only
  uint32_t checksum;  // CRC32C of everything before it
};
static_assert(sizeof(ImageHeader) == 136 && std::has_unique_object_representations_v<ImageHeader>);

// `version` is odd while the holder changes `now` or `live`; a reader then retries.
struct SharedState {
  uint64_t version;
  uint64_t baseline_version;  // odd while a reset changes `baseline` and the peak of live pages
  uint64_t damaged_pages;     // spare entries found damaged at the last open
  LiveCounts live;
  Counters now;
  Counters baseline;
  FtlCounts ftl;  // zeroes in images of programs that did not know it
};
static_assert(std::is_trivially_copyable_v<SharedState>);
static_assert(sizeof(SharedState) <= 6 * kPageBytes);  // the size before `ftl`, in whole pages

// Flags of BlockRecord::state.
inline constexpr uint32_t kBlockErasing = 1;   // an erase began and may be incomplete: erase again
inline constexpr uint32_t kBlockDoubtful = 2;  // torn wordline: data may not fit its spare entry
inline constexpr uint32_t kBlockFailed = 4;    // not programmable; its pages count until moved
inline constexpr uint32_t kBlockRetired = 8;   // a bad block; none of its pages counts

struct BlockRecord {
  uint32_t state;  // stored together with `erases`, in one 8-byte store
  uint32_t erases;
  uint32_t frontier;  // stored before the first page
  // Only of the hybrid and the log-block FTL: the place + 1 of a page whose program began and did
  // not end; 0: none.
  uint32_t programming;
};
static_assert(sizeof(BlockRecord) == 16);

inline constexpr uint32_t kBufferedMark = 0x42554646;  // "BUFF"

struct SpareEntry {
  uint64_t sequence;
  uint64_t written_at;  // the device's count of host pages at the host's write
  uint32_t lpn;         // kNoPage: padding
  uint16_t vstream;     // of the hybrid and the log-block FTL: flags
  uint16_t pstream;
  uint32_t erases;         // of its block when it was programmed
  uint32_t data_checksum;  // CRC32C of the map unit; 0 if lpn is kNoPage
  uint32_t replaced;       // of a hybrid FTL: Spare::replaced; else 0
  uint32_t checksum;       // CRC32C of everything before it
};
static_assert(sizeof(SpareEntry) == 40 && std::has_unique_object_representations_v<SpareEntry>);

// Flags in SpareEntry::vstream, as in Spare (ftl/nand.h).
inline constexpr uint16_t kSparePadding = 1, kSpareInPlace = 2;

struct ImageOffsets {
  uint64_t block, trim, spare, data, memory, file_bytes;
};

// Returns the size of one of the two halves of an eMMC's log of global contexts, whole blocks of
// flash: room for three contexts with all of the map.
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
  const uint64_t memory = data + pages * kPageBytes;
  const bool hybrid = geometry.ftl == FtlKind::kHybrid;
  const uint64_t bytes = hybrid ? round_up(HybridLayout(geometry).bytes(), kPageBytes) : 0;
  return {block, trim, spare, data, memory, memory + bytes};
}

}  // namespace streamfs::ssd
