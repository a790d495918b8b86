// mkfs: plans a geometry for the sizes of the two devices, and writes an empty filesystem.
#include "fuse-fs/meta/format.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMinHeapUnits = 64;
constexpr uint64_t kMaxRings = 8;
constexpr uint64_t kOrphanOwner = static_cast<uint64_t>(UnitKind::kOrphans) << 56U;

uint64_t units(uint64_t bytes) {
  return round_up(std::max<uint64_t>(bytes, 1), kUnitSize);
}

// A directory takes a unit for its entries, a slot in its parent's unit, and an inode for itself
// and for each of its entries.
constexpr uint64_t kEntries = 8;
constexpr uint64_t kPartsOfUnit = uint64_t{kInodesPerUnit} * kDirSlotsPerUnit;
constexpr uint64_t kPartsOfDirectory =
    kPartsOfUnit + kInodesPerUnit + (kEntries + 1) * kDirSlotsPerUnit;

constexpr uint64_t kIntentShare = 16;
constexpr uint64_t kIntentMostShare = 4;  // of a META that the log may leave short of room
constexpr uint64_t kFirstShare = 8;       // the first heap is the planned heap divided by this

struct Sizes {
  uint64_t rings, intent_segments, bitmap, checksums, vstreams;
  uint64_t fixed() const {
    return kSuperAreaSize + (rings + intent_segments) * kRingSize + 2 * bitmap + checksums +
           vstreams;
  }
};

Sizes fixed_sizes(const FormatOptions& options, uint64_t meta_size) {
  Sizes sizes{};
  sizes.rings = std::clamp<uint64_t>(meta_size / (16 * kRingSize), 1, kMaxRings);
  sizes.intent_segments = options.intent_log_bytes / kRingSize;
  sizes.bitmap = units(div_round_up(options.data_blocks, 8));
  sizes.checksums = options.checksums ? units(options.data_blocks * 4) : 0;
  const uint64_t vstreams = std::clamp<uint64_t>(meta_size / 4096, 1024, 65536);
  sizes.vstreams = units(vstreams * sizeof(VStreamSlot));
  return sizes;
}

uint64_t mean_file_blocks(const FormatOptions& options) {
  return std::clamp<uint64_t>(options.mean_file_bytes / kBlockSize, 1, ~uint32_t{0});
}

// Returns the bytes of a heap with one file for each mean_file_bytes of DATA, and the reserve.
uint64_t planned_heap(const FormatOptions& options) {
  const uint64_t files = options.data_blocks / mean_file_blocks(options);
  const uint64_t used = div_round_up(files * kPartsOfDirectory, kEntries * kPartsOfUnit) + 3;
  return std::max((used + heap_reserve(used + used / 16)) * kUnitSize, kMiB);
}

// Returns the size of META in which the fixed regions leave so much heap and `map` bytes of heap
// map.
uint64_t size_with(const FormatOptions& options, uint64_t heap, uint64_t map) {
  uint64_t size = 0;
  for (uint64_t needed = heap; needed > size;) {
    size = needed;
    needed = round_up(fixed_sizes(options, size).fixed() + heap + map, kMiB);
  }
  return size;
}

// Returns the bytes of heap map for the largest META. With such a map, a heap that grows to that
// size stays one segment.
uint64_t largest_map(const FormatOptions& options) {
  return units(meta_size_max(options) / kUnitSize);
}

class Layouter {
 public:
  explicit Layouter(Superblock& super) : super_(super) {}
  void place(RegionKind kind, uint64_t length) {
    if (length == 0) return;
    super_.regions[static_cast<size_t>(kind)].segments[0] = {next_, length};
    next_ += length;
  }
  uint64_t next() const { return next_; }

 private:
  Superblock& super_;
  uint64_t next_ = kSuperAreaSize;
};

void store_object(pmem::Region& region, uint64_t offset, ConstBytes object) {
  std::vector<uint64_t> words(div_round_up(object.size(), kWordSize));
  std::memcpy(words.data(), object.data(), object.size());
  region.store(offset, words);
}

void store_heap_kind(pmem::Region& region, const Geometry& geometry, uint64_t unit, UnitKind kind) {
  const uint64_t offset = geometry.region_offset(RegionKind::kHeapMap, unit);
  const uint64_t shift = offset % kWordSize * 8;
  region.store_masked(round_down(offset, kWordSize), uint64_t{0xff} << shift,
                      static_cast<uint64_t>(kind) << shift);
}

InodeImage root_image(const Superblock& super, Timestamp now) {
  InodeImage root{};
  root.mode = S_IFDIR | 0755;
  root.nlink = 2;
  root.mtime = root.ctime = root.atime = root.btime = pack_time(now.seconds, now.nanoseconds);
  root.generation = 1;
  root.parent = root.self = super.root_inode;
  root.checksum = inode_checksum(root);
  return root;
}

void mark_reserved_blocks(pmem::Region& region, const Geometry& geometry) {
  for (uint64_t block = 0; block < geometry.super().first_data_block; ++block) {
    region.store_masked(geometry.bitmap_word(RegionKind::kBlockBitmap, block / 64),
                        uint64_t{1} << (block % 64), ~uint64_t{0});
  }
}

}  // namespace

uint64_t inodes_possible(const Superblock& super, uint64_t meta_size) {
  // The root's two units, the orphans' and the reserve for unlink and truncate are not for new
  // files.
  const uint64_t heap = region_bytes(super, RegionKind::kHeap) + meta_size - super.meta_size;
  const uint64_t all = heap / kUnitSize, kept = heap_reserve(all) + 3;
  return all > kept ? files_fitting(all - kept) : 0;
}

uint64_t files_fitting(uint64_t heap_units) {
  return heap_units * kPartsOfUnit * kEntries / kPartsOfDirectory;
}

uint64_t meta_size_max(const FormatOptions& options) {
  const uint64_t heap = planned_heap(options);
  return size_with(options, heap, units(heap / kUnitSize));
}

uint64_t meta_size_max(const Superblock& super) {
  FormatOptions options;
  options.data_blocks = super.data_blocks;
  options.checksums = (super.features & kFeatureChecksums) != 0;
  options.intent_log_bytes = intent_log_bytes(super);
  if (super.mean_file_blocks != 0) options.mean_file_bytes = super.mean_file_blocks * kBlockSize;
  return meta_size_max(options);
}

uint64_t intent_log_share(uint64_t meta_size) {
  return round_down(meta_size / kIntentShare, kRingSize);
}

uint64_t first_meta_size(const FormatOptions& options) {
  return size_with(options, std::max(planned_heap(options) / kFirstShare, kMiB),
                   largest_map(options));
}

uint64_t default_intent_log(const FormatOptions& options, uint64_t meta_size) {
  FormatOptions with_log = options;
  with_log.intent_log_bytes = std::max(intent_log_share(meta_size), kIntentLogLeast);
  const bool fits = with_log.intent_log_bytes <= meta_size / kIntentMostShare ||
                    first_meta_size(with_log) <= meta_size;
  return fits ? with_log.intent_log_bytes : 0;
}

Result<Superblock> plan_format(uint64_t meta_size, pmem::MetaClass meta_class,
                               const FormatOptions& options) {
  meta_size = round_down(meta_size, kUnitSize);
  const Sizes sizes = fixed_sizes(options, meta_size);
  const uint64_t planned_map = largest_map(options);
  const uint64_t least = sizes.fixed() + planned_map + kMinHeapUnits * kUnitSize;
  if (meta_size < least) {
    return Error{ENOSPC, "META is too small: " + std::to_string(meta_size) + " bytes, at least " +
                             std::to_string(round_up(least, kMiB)) +
                             " needed for this data device"};
  }
  Superblock super{};
  super.magic = wire::kSuperMagic;
  super.version = options.version;
  std::ranges::copy(options.uuid, super.uuid);
  std::strncpy(super.label, options.label.c_str(), sizeof(super.label) - 1);
  std::strncpy(super.data_identity, options.data_identity.c_str(), sizeof(super.data_identity) - 1);
  super.meta_size = meta_size;
  super.data_blocks = options.data_blocks;
  super.ring_count = static_cast<uint32_t>(sizes.rings);
  super.journal_seed = options.random_seed;
  super.mean_file_blocks = static_cast<uint32_t>(mean_file_blocks(options));
  super.features =
      (options.checksums ? kFeatureChecksums : 0) | (options.meta_log ? kFeatureMetaLog : 0) |
      (options.mirror ? kFeatureMirror : 0) | (options.declared_persistent ? kFeatureDeclared : 0) |
      (options.trust_memory ? kFeatureTrustMemory : 0);
  if (sizes.intent_segments > 0) super.features |= kFeatureIntentLog;
  if ((super.features & (kFeatureIntentLog | kFeatureDeclared | kFeatureTrustMemory)) != 0)
    super.version = std::max(super.version, kIntentVersion);
  super.meta_class = static_cast<uint8_t>(meta_class);
  super.clean = 1;
  super.created_seconds = options.created_seconds;
  Layouter layouter(super);
  layouter.place(RegionKind::kRings, (sizes.rings + sizes.intent_segments) * kRingSize);
  layouter.place(RegionKind::kBlockBitmap, sizes.bitmap);
  layouter.place(RegionKind::kUntrimmed, sizes.bitmap);
  layouter.place(RegionKind::kChecksums, sizes.checksums);
  layouter.place(RegionKind::kVStreams, sizes.vstreams);
  const uint64_t map = std::max(units((meta_size - layouter.next()) / kUnitSize), planned_map);
  layouter.place(RegionKind::kHeapMap, map);
  super.root_inode = layouter.next() / kCellSize;
  layouter.place(RegionKind::kHeap, round_down(meta_size - layouter.next(), kUnitSize));
  super.orphan_head = super.root_inode * kCellSize + kUnitSize;
  super.clean_used_inodes = 1;
  super.first_data_block = make_label(super).reserved_blocks;
  if (super.first_data_block + 256 > super.data_blocks) {
    return Error{ENOSPC, "DATA is too small: " + std::to_string(super.data_blocks * kBlockSize) +
                             " bytes, at least " +
                             std::to_string((super.first_data_block + 256) * kBlockSize) +
                             " needed"};
  }
  return super;
}

Result<void> format(pmem::Region& region, const Superblock& super, Timestamp now) {
  SFS_ASSIGN(const Geometry geometry, Geometry::from(super));
  region.store_zeroes(0, region.size());
  mark_reserved_blocks(region, geometry);
  store_heap_kind(region, geometry, 0, UnitKind::kInodes);
  store_heap_kind(region, geometry, 1, UnitKind::kOrphans);
  const InodeImage root = root_image(super, now);
  store_object(region, super.root_inode * kCellSize, std::as_bytes(std::span(&root, 1)));
  region.store_word(super.orphan_head, kOrphanOwner);
  region.fence(region.flush(0, region.size()));
  return store_superblock(region, super);
}

}  // namespace streamfs::meta
