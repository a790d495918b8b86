#include "fuse-fs/meta/growth.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/human_bytes.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/label.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMaxDataBlocks = (uint64_t{1} << 40) - 1;
constexpr uint64_t kDataLeft = 256;  // blocks that an extension of the log leaves to files

uint64_t half_more(uint64_t value) {
  return value + value / 2;
}

// Bytes to be added to a region.
struct Addition {
  RegionKind kind;
  uint64_t bytes;
};
using Maps = std::array<Addition, 4>;

uint64_t sum(const Maps& maps) {
  uint64_t bytes = 0;
  for (const Addition& map : maps) bytes += map.bytes;
  return bytes;
}

// Returns the bytes that each map lacks for so many blocks and so much heap.
Maps missing(const Superblock& super, uint64_t blocks, uint64_t heap_bytes) {
  const bool checksums = (super.features & kFeatureChecksums) != 0;
  Maps maps{{{RegionKind::kBlockBitmap, div_round_up(blocks, 8)},
             {RegionKind::kUntrimmed, div_round_up(blocks, 8)},
             {RegionKind::kChecksums, checksums ? blocks * 4 : 0},
             {RegionKind::kHeapMap, heap_bytes / kUnitSize}}};
  for (Addition& map : maps) {
    const uint64_t there = region_bytes(super, map.kind);
    map.bytes = map.bytes > there ? round_up(map.bytes - there, kUnitSize) : 0;
  }
  return maps;
}

// Does the same. If any map lacks bytes, returns them for half as much again as there is.
Maps missing_and_ahead(const Superblock& super, uint64_t blocks, uint64_t heap_bytes) {
  const Maps least = missing(super, blocks, heap_bytes);
  if (sum(least) == 0) return least;
  return missing(super, std::max(blocks, half_more(super.data_blocks)),
                 std::max(heap_bytes, half_more(region_bytes(super, RegionKind::kHeap))));
}

// Returns the bytes that this growth adds to the maps. If a map is too short, all are made long
// enough for later growths as well: up to planned_meta, or for half as much again.
Maps maps_for(const Superblock& now, const Superblock& next, uint64_t planned_meta) {
  const uint64_t heap = region_bytes(now, RegionKind::kHeap) + next.meta_size - now.meta_size;
  if (planned_meta <= next.meta_size) return missing_and_ahead(now, next.data_blocks, heap);
  const Maps least = missing(now, next.data_blocks, heap);
  if (sum(least) == 0) return least;
  return missing(now, next.data_blocks, heap + planned_meta - next.meta_size);
}

// Returns the bytes of a heap with as many files per block of data as there are.
uint64_t proportional_heap(const Superblock& super, uint64_t blocks) {
  const uint64_t heap = region_bytes(super, RegionKind::kHeap);
  const double share =
      static_cast<double>(blocks - super.data_blocks) / static_cast<double>(super.data_blocks);
  const auto more = static_cast<uint64_t>(static_cast<double>(heap) * share);
  return heap + round_up(more, kUnitSize);
}

uint64_t free_segments(const Superblock& super, RegionKind kind) {
  const auto& segments = super.regions[static_cast<size_t>(kind)].segments;
  return static_cast<uint64_t>(std::ranges::count(segments, uint64_t{0}, &Segment::length));
}

// Returns the bytes of new room that the intent log gets, a sixteenth. Each addition takes a
// segment of the log's list and, if no map grows, one of the heap's. The log therefore gets nothing
// if that is less than an eighth of it, or if the heap could not grow later.
uint64_t intent_log_gain(const Superblock& now, const Superblock& next, const Maps& maps) {
  constexpr uint64_t kHeapSegmentsLeft = 2;
  const uint64_t log = intent_log_bytes(now);
  const uint64_t gain = intent_log_share(next.meta_size) - intent_log_share(now.meta_size);
  if (log == 0 || gain < log / 8 || free_segments(now, RegionKind::kRings) == 0) return 0;
  const bool heap_follows = sum(maps) == 0;
  if (heap_follows && free_segments(now, RegionKind::kHeap) <= kHeapSegmentsLeft) return 0;
  return gain;
}

Result<uint64_t> meta_size_after(const Superblock& now, const GrowthRequest& request) {
  const uint64_t there = std::max(request.meta_bytes, now.meta_size);
  if (request.wanted_meta) {
    const uint64_t wanted = round_down(*request.wanted_meta, kUnitSize);
    if (wanted < now.meta_size) {
      const auto [has, asked] = human_pair(now.meta_size, wanted);
      return Error{EOPNOTSUPP, "META cannot shrink from " + has + " to " + asked};
    }
    if (wanted > there && !request.extensible) {
      const auto [has, asked] = human_pair(there, wanted);
      return Error{ENOSPC,
                   "META cannot grow: its device has " + has + ", but " + asked + " are asked for"};
    }
    return wanted;
  }
  if (!request.extensible || request.data_blocks == now.data_blocks) {
    return round_down(there, kUnitSize);
  }
  const uint64_t heap = proportional_heap(now, request.data_blocks);
  const uint64_t maps = sum(missing_and_ahead(now, request.data_blocks, heap));
  uint64_t added = heap - region_bytes(now, RegionKind::kHeap) + maps;
  if (intent_log_bytes(now) != 0) added += added / 15;  // of which the log may get a sixteenth
  return std::max(round_down(there, kUnitSize), round_up(now.meta_size + added, kMiB));
}

Result<void> append(Superblock& super, RegionKind kind, Segment segment) {
  if (segment.length == 0) return {};
  Segment* last = nullptr;
  for (Segment& each : super.regions[static_cast<size_t>(kind)].segments) {
    if (each.length == 0) {
      const bool follows = last != nullptr && last->offset + last->length == segment.offset;
      (follows ? last->length : each.length) += segment.length;
      if (!follows) each.offset = segment.offset;
      return {};
    }
    last = &each;
  }
  if (last->offset + last->length == segment.offset) {
    last->length += segment.length;
    return {};
  }
  return Error{ENOSPC, "this filesystem has grown as often as it can; copy it to a new one"};
}

// Lays out the new part of META: [now.meta_size, next.meta_size).
Result<void> place(const Superblock& now, Superblock& next, uint64_t planned_meta) {
  const uint64_t heap = region_bytes(now, RegionKind::kHeap);
  Maps maps = maps_for(now, next, planned_meta);
  uint64_t room = next.meta_size - now.meta_size;
  const uint64_t gain = intent_log_gain(now, next, maps);
  const bool log_grows = gain > 0 && gain + sum(missing(now, next.data_blocks, heap + room)) < room;
  if (log_grows) room -= gain;
  const uint64_t heap_due = proportional_heap(now, next.data_blocks) - heap;
  const bool too_much = sum(maps) > room / 2 && sum(maps) + heap_due > room;
  if (too_much) maps = missing(now, next.data_blocks, heap + room);
  if (sum(maps) > room) {
    const uint64_t least = now.meta_size + sum(missing(now, next.data_blocks, heap));
    return Error{ENOSPC, "META is too small for so much data: it has " +
                             human_bytes(next.meta_size) + ", but needs at least " +
                             std::to_string(div_round_up(least + kUnitSize, kMiB)) + " MiB"};
  }
  uint64_t at = now.meta_size;
  if (log_grows) {
    SFS_TRY(append(next, RegionKind::kRings, {at, gain}));
    at += gain;
  }
  for (const Addition& map : maps) {
    SFS_TRY(append(next, map.kind, {at, map.bytes}));
    at += map.bytes;
  }
  return append(next, RegionKind::kHeap, {at, next.meta_size - at});
}

// Returns the blocks of an extension of the log with room for a META three times as large, within
// planned_meta and the spare blocks: the log has few extensions, and META grows in small steps.
uint64_t log_ahead(const Superblock& next, uint64_t needed, uint64_t least,
                   const GrowthRequest& request) {
  if (request.planned_meta <= next.meta_size) return least;
  const uint64_t later = (request.planned_meta - next.meta_size) / kBlockSize;
  const uint64_t ahead = 2 * std::min(2 * needed, later + later / 256);
  return std::max(least, round_down(std::min(least + ahead, request.spare_blocks), kBlocksPerMiB));
}

// Finds room for the log: in the new blocks of DATA, ahead of need if they are many, else in free
// old blocks.
Result<BlockRange> log_room(const Superblock& now, const Superblock& next, uint64_t needed,
                            const GrowthRequest& request) {
  const uint64_t capacity = request.snapshot_blocks;
  const uint64_t added = next.data_blocks - now.data_blocks;
  const uint64_t least = round_up(2 * (needed - capacity), kBlocksPerMiB);
  const uint64_t ahead = round_up(std::max(least, capacity), kBlocksPerMiB);
  const uint64_t count = ahead <= added / 4 ? ahead : least;
  if (count + kDataLeft <= added) return BlockRange{now.data_blocks, count};
  if (request.find_log_room) {
    if (const auto found = request.find_log_room(log_ahead(next, needed, least, request)))
      return *found;
    if (const auto found = request.find_log_room(least)) return *found;
  }
  return Error{ENOSPC,
               "the log of META on DATA needs more room there for so large a META: make DATA "
               "larger too, by at least " +
                   human_bytes((least + kDataLeft) * kBlockSize)};
}

Result<void> extend_log(const Superblock& now, Superblock& next, const GrowthRequest& request) {
  const uint64_t needed = snapshot_blocks_for(next);
  if (request.snapshot_blocks == 0 || needed <= request.snapshot_blocks) return {};
  const auto slot = std::ranges::find(next.log_extensions, uint64_t{0});
  if (slot == std::end(next.log_extensions)) {
    return Error{ENOSPC, "the log of META has grown as often as it can; copy this filesystem"};
  }
  SFS_ASSIGN(const BlockRange room, log_room(now, next, needed, request));
  *slot = pack_range(room);
  return {};
}

}  // namespace

Result<Superblock> plan_growth(const Superblock& now, const GrowthRequest& request) {
  if (request.data_blocks < now.data_blocks) {
    const auto [had, left] =
        human_pair(now.data_blocks * kBlockSize, request.data_blocks * kBlockSize);
    return Error{EOPNOTSUPP, "DATA cannot shrink: the filesystem has " + had +
                                 ", but the device has only " + left};
  }
  if (request.data_blocks > kMaxDataBlocks) return Error{EFBIG, "DATA is larger than 4 PiB"};
  Superblock next = now;
  next.data_blocks = request.data_blocks;
  SFS_ASSIGN(next.meta_size, meta_size_after(now, request));
  if (same_size(now, next)) return next;
  SFS_TRY(place(now, next, request.planned_meta));
  SFS_TRY(extend_log(now, next, request));
  SFS_TRY(Geometry::from(next));
  return next;
}

Result<Superblock> plan_intent_log(const Superblock& now, uint64_t medium_bytes, uint64_t bytes) {
  Superblock next = now;
  const uint64_t spare = spare_ring_bytes(now);
  const uint64_t added = bytes > spare ? bytes - spare : 0;
  const uint64_t beyond = medium_bytes > now.meta_size ? medium_bytes - now.meta_size : 0;
  if (added > beyond) {
    return Error{ENOSPC, "META has " + human_bytes(beyond) + " beyond its formatted size of " +
                             human_bytes(now.meta_size) + ", and the intent log needs " +
                             human_bytes(added) + ": make META's file or device " +
                             human_bytes(added - beyond) + " larger, to " +
                             std::to_string(now.meta_size + added) +
                             " bytes, or ask for a smaller log"};
  }
  next.meta_size += added;
  next.features |= kFeatureIntentLog;
  SFS_TRY(append(next, RegionKind::kRings, {now.meta_size, added}));
  SFS_TRY(Geometry::from(next));
  return next;
}

}  // namespace streamfs::meta
