// mkfs: from the sizes of the two devices to a geometry, and from that to an empty filesystem.
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
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/label.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMinHeapUnits = 64;
constexpr uint64_t kMaxRings = 8;
constexpr uint64_t kOrphanOwner = static_cast<uint64_t>(UnitKind::kOrphans) << 56U;

uint64_t units(uint64_t bytes) {
  return round_up(std::max<uint64_t>(bytes, 1), kUnitSize);
}

struct Sizes {
  uint64_t rings, bitmap, checksums, vstreams;
  uint64_t fixed() const {
    return kSuperAreaSize + rings * kRingSize + 2 * bitmap + checksums + vstreams;
  }
};

Sizes fixed_sizes(const FormatOptions& options, uint64_t meta_size) {
  Sizes sizes{};
  sizes.rings = std::clamp<uint64_t>(meta_size / (16 * kRingSize), 1, kMaxRings);
  sizes.bitmap = units(div_round_up(options.data_blocks, 8));
  sizes.checksums = options.checksums ? units(options.data_blocks * 4) : 0;
  const uint64_t vstreams = std::clamp<uint64_t>(meta_size / 4096, 1024, 65536);
  sizes.vstreams = units(vstreams * sizeof(VStreamSlot));
  return sizes;
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

uint64_t inodes_possible(const Superblock& super) {
  // The root's unit, the orphans' and what stays for unlink and truncate are not for new files.
  const uint64_t all = region_bytes(super, RegionKind::kHeap) / kUnitSize;
  const uint64_t kept = heap_reserve(all) + 2;
  return all > kept ? files_fitting(all - kept) : 0;
}

// A file takes an inode and the directory slot that names it; a directory besides these, on
// average, half a unit that is not full.
uint64_t files_fitting(uint64_t heap_units) {
  constexpr uint64_t kPair = kInodesPerUnit + kDirSlotsPerUnit;  // in parts of a unit, so many:
  constexpr uint64_t kParts = uint64_t{kInodesPerUnit} * kDirSlotsPerUnit;
  constexpr uint64_t kFiles = 100;  // of a directory
  return heap_units * kParts * kFiles / ((kFiles + 1) * kPair + kParts / 2);
}

uint64_t meta_size_for(const FormatOptions& options) {
  const uint64_t files =
      options.data_blocks * kBlockSize / std::max<uint64_t>(options.mean_file_bytes, kBlockSize);
  // Inode, directory slot and one extent a file, and a quarter for what is half full.
  const uint64_t heap = files * (kCellSize + kLineSize + sizeof(ExtentSlot)) * 5 / 4 + kMiB;
  const Sizes sizes = fixed_sizes(options, heap * 2);
  return round_up(sizes.fixed() + heap + units(heap / kUnitSize), kMiB);
}

Result<Superblock> plan_format(uint64_t meta_size, pmem::MetaClass meta_class,
                               const FormatOptions& options) {
  meta_size = round_down(meta_size, kUnitSize);
  const Sizes sizes = fixed_sizes(options, meta_size);
  const uint64_t least = sizes.fixed() + (kMinHeapUnits + 1) * kUnitSize;
  if (meta_size < least) {
    return Error{ENOSPC, "META is too small: " + std::to_string(meta_size) + " bytes, at least " +
                             std::to_string(round_up(least, kMiB)) +
                             " needed for this data device"};
  }
  Superblock super{};
  super.magic = kSuperMagic;
  super.version = options.version;
  std::ranges::copy(options.uuid, super.uuid);
  std::strncpy(super.label, options.label.c_str(), sizeof(super.label) - 1);
  std::strncpy(super.data_identity, options.data_identity.c_str(), sizeof(super.data_identity) - 1);
  super.meta_size = meta_size;
  super.data_blocks = options.data_blocks;
  super.ring_count = static_cast<uint32_t>(sizes.rings);
  super.journal_seed = options.random_seed;
  super.features = (options.checksums ? kFeatureChecksums : 0) |
                   (options.meta_log ? kFeatureMetaLog : 0) | (options.mirror ? kFeatureMirror : 0);
  super.meta_class = static_cast<uint8_t>(meta_class);
  super.clean = 1;
  super.created_seconds = options.created_seconds;
  Layouter layouter(super);
  layouter.place(RegionKind::kRings, sizes.rings * kRingSize);
  layouter.place(RegionKind::kBlockBitmap, sizes.bitmap);
  layouter.place(RegionKind::kUntrimmed, sizes.bitmap);
  layouter.place(RegionKind::kChecksums, sizes.checksums);
  layouter.place(RegionKind::kVStreams, sizes.vstreams);
  const uint64_t heap_units = (meta_size - layouter.next()) / kUnitSize;
  const uint64_t map = units(heap_units);
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
  region.flush(0, region.size());
  region.fence();
  return store_superblock(region, super);
}

}  // namespace streamfs::meta
