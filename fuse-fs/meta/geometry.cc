#include "fuse-fs/meta/geometry.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::meta {
namespace {

const SegmentList& segments_of(const Superblock& super, RegionKind kind) {
  return super.regions[static_cast<size_t>(kind)];
}

Result<void> check_segments(const Superblock& super) {
  std::vector<std::pair<uint64_t, uint64_t>> taken{{0, kSuperAreaSize}};
  for (const SegmentList& list : super.regions) {
    for (const Segment& segment : list.segments) {
      if (segment.length == 0) continue;
      if (segment.offset % kUnitSize != 0 || segment.length % kUnitSize != 0 ||
          segment.offset >= super.meta_size || segment.length > super.meta_size - segment.offset) {
        return Error{EINVAL, "a segment of the superblock lies outside META"};
      }
      taken.emplace_back(segment.offset, segment.offset + segment.length);
    }
  }
  for (const Segment& segment : segments_of(super, RegionKind::kRings).segments) {
    if (segment.length % kRingSize != 0) {
      return Error{EINVAL, "a segment of the superblock cuts a journal ring"};
    }
  }
  std::ranges::sort(taken);
  for (size_t i = 1; i < taken.size(); ++i) {
    if (taken[i].first < taken[i - 1].second) {
      return Error{EINVAL, "two segments of the superblock overlap"};
    }
  }
  return {};
}

// Extensions of the log must lie inside DATA, apart from each other and from the blocks reserved by
// mkfs. The first ones are in use and not empty, the others are 0: reserved_in() and valid_blocks()
// then agree.
Result<void> check_extensions(const Superblock& super) {
  std::vector<std::pair<uint64_t, uint64_t>> taken{{0, super.first_data_block}};
  bool possible = true, last = false;
  for (const uint64_t packed : super.log_extensions) {
    const BlockRange range = unpack_range(packed);
    possible = possible && (packed == 0 || (range.count > 0 && !last));
    last = packed == 0;
    if (packed != 0) taken.emplace_back(range.first, range.first + range.count);
  }
  std::ranges::sort(taken);
  for (size_t i = 1; i < taken.size(); ++i) {
    possible =
        possible && taken[i].first >= taken[i - 1].second && taken[i].second <= super.data_blocks;
  }
  if (!possible) return Error{EINVAL, "the superblock reserves impossible blocks of DATA"};
  return {};
}

// Returns the bits [from, end) of the word that begins with bit `base`.
uint64_t bits_between(uint64_t base, uint64_t from, uint64_t end) {
  const uint64_t first = std::max(from, base) - base;
  const uint64_t last = std::min(end, base + 64);
  if (from >= base + 64 || last <= base + first) return 0;
  const uint64_t count = last - base - first;
  return (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

bool regions_large_enough(const Geometry& g) {
  const uint64_t blocks = g.data_blocks();
  const uint64_t bitmap = div_round_up(blocks, 64) * kWordSize;
  const uint64_t intent = (g.super().features & kFeatureIntentLog) != 0 ? 1 : 0;  // at least
  return g.region_bytes(RegionKind::kRings) >= (g.super().ring_count + intent) * kRingSize &&
         g.region_bytes(RegionKind::kBlockBitmap) >= bitmap &&
         g.region_bytes(RegionKind::kUntrimmed) >= bitmap &&
         (!g.checksums() || g.region_bytes(RegionKind::kChecksums) >= blocks * 4) &&
         g.region_bytes(RegionKind::kHeapMap) >= g.heap_units() && g.heap_units() > 0;
}

}  // namespace

Geometry::Geometry(const Superblock& super) : versions_{super}, super_(&versions_.front()) {}

Geometry& Geometry::operator=(const Geometry& other) {
  if (this != &other) extend(other.super());
  return *this;
}

void Geometry::extend(const Superblock& larger) {
  versions_.push_front(larger);
  super_.store(&versions_.front(), std::memory_order_release);
}

Result<Geometry> Geometry::from(const Superblock& super) {
  const Geometry geometry(super);
  SFS_TRY(check_segments(super));
  SFS_TRY(check_extensions(super));
  const bool counts_ok = super.ring_count > 0 && super.ring_count <= 256 &&
                         super.data_blocks > super.first_data_block &&
                         super.data_blocks < (uint64_t{1} << 40);
  if (!counts_ok || !regions_large_enough(geometry)) {
    return Error{EINVAL, "the superblock's geometry contradicts itself"};
  }
  return geometry;
}

uint64_t region_bytes(const Superblock& super, RegionKind kind) {
  uint64_t bytes = 0;
  for (const Segment& segment : segments_of(super, kind).segments) bytes += segment.length;
  return bytes;
}

uint64_t spare_ring_bytes(const Superblock& super) {
  return region_bytes(super, RegionKind::kRings) - super.ring_count * kRingSize;
}

uint64_t intent_log_bytes(const Superblock& super) {
  return (super.features & kFeatureIntentLog) != 0 ? spare_ring_bytes(super) : 0;
}

uint64_t Geometry::region_offset(RegionKind kind, uint64_t at) const {
  for (const Segment& segment : segments_of(super(), kind).segments) {
    if (at < segment.length) return segment.offset + at;
    at -= segment.length;
  }
  assertion_failed("offset within its region", __FILE__, __LINE__);
}

uint64_t Geometry::ring_offset(uint32_t ring) const {
  return region_offset(RegionKind::kRings, ring * kRingSize);
}

uint64_t Geometry::intent_segments() const {
  return intent_log_bytes(super()) / kRingSize;
}

uint64_t Geometry::intent_offset(uint64_t segment) const {
  return region_offset(RegionKind::kRings, (super().ring_count + segment) * kRingSize);
}

uint64_t Geometry::bitmap_word(RegionKind bitmap, uint64_t word) const {
  return region_offset(bitmap, word * kWordSize);
}

uint64_t Geometry::checksum_offset(BlockNo block) const {
  return region_offset(RegionKind::kChecksums, block.value * 4);
}

std::optional<uint64_t> Geometry::region_byte(RegionKind kind, uint64_t offset) const {
  uint64_t before = 0;
  for (const Segment& segment : segments_of(super(), kind).segments) {
    if (offset >= segment.offset && offset - segment.offset < segment.length)
      return before + offset - segment.offset;
    before += segment.length;
  }
  return std::nullopt;
}

std::optional<uint64_t> Geometry::unit_of(uint64_t offset) const {
  const auto byte = region_byte(RegionKind::kHeap, offset);
  return byte ? std::optional(*byte / kUnitSize) : std::nullopt;
}

uint64_t Geometry::reserved_in(uint64_t word) const {
  const Superblock& now = super();
  const uint64_t base = word * 64;
  const bool inside = base >= now.first_data_block && base + 64 <= now.data_blocks;
  if (inside && now.log_extensions[0] == 0) return 0;
  uint64_t bits = bits_between(base, 0, now.first_data_block) |
                  bits_between(base, now.data_blocks, ~uint64_t{0});
  for (const uint64_t packed : now.log_extensions) {
    const BlockRange range = unpack_range(packed);
    bits |= bits_between(base, range.first, range.first + range.count);
  }
  return bits;
}

bool Geometry::valid_blocks(uint64_t first, uint64_t count) const {
  const Superblock& now = super();
  if (first < now.first_data_block || first >= now.data_blocks || count > now.data_blocks - first) {
    return false;
  }
  return std::ranges::none_of(now.log_extensions, [&](uint64_t packed) {
    const BlockRange range = unpack_range(packed);
    return first < range.first + range.count && range.first < first + count;
  });
}

uint64_t Geometry::reserved_blocks() const {
  const Superblock& now = super();
  uint64_t blocks = now.first_data_block;
  for (const uint64_t packed : now.log_extensions) blocks += unpack_range(packed).count;
  return blocks;
}

bool Geometry::journalable(uint64_t offset, uint64_t length) const {
  for (const RegionKind kind : {RegionKind::kHeap, RegionKind::kHeapMap, RegionKind::kVStreams}) {
    for (const Segment& segment : segments_of(super(), kind).segments) {
      if (offset >= segment.offset && offset - segment.offset < segment.length &&
          length <= segment.length - (offset - segment.offset)) {
        return true;
      }
    }
  }
  return false;
}

uint64_t pack_time(int64_t seconds, uint32_t nanoseconds) {
  constexpr int64_t kLast = (int64_t{1} << 34) - 1 - kTimeBias;
  const int64_t clamped = std::clamp(seconds, -kTimeBias, kLast);
  return static_cast<uint64_t>(clamped + kTimeBias) << 30U | (nanoseconds & 0x3fff'ffffU);
}

}  // namespace streamfs::meta
