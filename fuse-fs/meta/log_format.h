// The bytes of the metadata log on the data device (metadata_log.h says what they are for).
// Thread safety: types only.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/types.h"

namespace streamfs::meta {

inline constexpr uint64_t kChunkBytesMax = 1024 * 1024;

// A bit of LogChunkHeader::conditions: the next chunk belongs to the same group. A group counts as
// a whole: if a chunk of it is missing or torn, none of its records counts. A chunk without the bit
// ends its group.
inline constexpr uint32_t kGroupGoesOn = uint32_t{1} << 31;

// First 64 bytes of a chunk; the payload follows: records with their bodies, then conditions,
// padded with zeroes to whole blocks.
struct LogChunkHeader {
  uint64_t magic;
  uint64_t number;         // consecutive
  uint64_t last_sequence;  // every record up to it is in this chunk or an earlier one
  uint32_t payload_bytes;
  uint32_t conditions;  // count; bit 31: kGroupGoesOn
  uint8_t uuid[16];
  uint32_t payload_checksum;
  uint32_t checksum;  // CRC32C of this header with this field zero
  uint64_t settled;   // conditions of records up to this sequence were met before this was written
};
static_assert(sizeof(LogChunkHeader) == 64);
static_assert(std::has_unique_object_representations_v<LogChunkHeader>);

// The record with this sequence counts only if the block meets this condition (DataCondition).
struct LogCondition {
  uint64_t sequence;
  uint64_t block;
  uint32_t checksum;
  uint32_t length;  // 0: all of it
};
static_assert(sizeof(LogCondition) == 24);
static_assert(std::has_unique_object_representations_v<LogCondition>);

// First block of a snapshot area; SnapshotPage entries follow, padded to a block, then the pages.
struct SnapshotHeader {
  uint64_t magic;
  uint64_t generation;
  uint64_t sequence;     // every record up to it is in the pages
  uint64_t first_chunk;  // number of the first chunk after the snapshot began
  uint64_t first_block;  // the place of that chunk: a block of the log area
  uint64_t pages;
  uint8_t uuid[16];
  uint32_t index_checksum;
  uint32_t checksum;  // CRC32C of this header with this field zero
};
static_assert(sizeof(SnapshotHeader) == 72);
static_assert(std::has_unique_object_representations_v<SnapshotHeader>);

// How far the log reaches beyond the start of its newest snapshot. The superblock keeps it in one
// word.
struct LogEnd {
  static constexpr unsigned kBits = 24;  // bits of either length; the generation has the rest

  uint64_t generation = 0;  // of the snapshot
  uint64_t chunks = 0, blocks = 0;

  // 0, "not known", if a length does not fit.
  constexpr uint64_t packed() const {
    if ((chunks | blocks) >> kBits != 0) return 0;
    return generation << 2 * kBits | chunks << kBits | blocks;
  }
  static constexpr LogEnd unpacked(uint64_t word) {
    constexpr uint64_t kLength = (uint64_t{1} << kBits) - 1;
    return {word >> 2 * kBits, word >> kBits & kLength, word & kLength};
  }
  // Returns whether this is the end of the log after a snapshot of that generation, as far as the
  // bits that are kept tell.
  constexpr bool is_after(uint64_t snapshot) const {
    return generation == snapshot << 2 * kBits >> 2 * kBits;
  }
};

struct SnapshotPage {
  uint32_t number;  // META offset / 4096
  uint32_t checksum;
};
static_assert(sizeof(SnapshotPage) == 8);

}  // namespace streamfs::meta
