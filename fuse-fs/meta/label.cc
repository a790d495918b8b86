#include "fuse-fs/meta/label.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/image.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMinLogBlocks = 1024;   // 4 MiB
constexpr uint64_t kMaxLogBlocks = 16384;  // 64 MiB

// Returns how many pages a snapshot may hold: all but superblocks, rings and checksums.
uint64_t pages_of(const Superblock& super) {
  uint64_t bytes = 0;
  for (const RegionKind kind : {RegionKind::kBlockBitmap, RegionKind::kUntrimmed,
                                RegionKind::kHeapMap, RegionKind::kHeap, RegionKind::kVStreams}) {
    bytes += region_bytes(super, kind);
  }
  return bytes / kUnitSize;
}

struct Whose {
  uint64_t magic;
  const char* name;
};

Result<DataLabel> parse_copy(ConstBytes block, uint64_t offset, const Whose& whose) {
  DataLabel label;
  std::memcpy(&label, block.data() + offset, sizeof(label));
  if (label.magic != whose.magic) {
    return Error{EINVAL, std::string(whose.name) + " holds no streamfs filesystem"};
  }
  if (label.checksum != label_checksum(label)) {
    return Error{EIO, std::string("the label of ") + whose.name + " is damaged"};
  }
  return label;
}

Result<DataLabel> of_our_version(const DataLabel& label, const Whose& whose) {
  if (!known_version(label.version)) {
    return Error{EINVAL, std::string(whose.name) + " has format version " +
                             std::to_string(label.version) + ", this streamfs knows " +
                             std::to_string(kOldestVersion) + " to " +
                             std::to_string(kIntentVersion)};
  }
  if ((label.geometry.features & ~kKnownFeatures) != 0) {
    return Error{EINVAL,
                 std::string(whose.name) + " has features that this streamfs does not know"};
  }
  const bool whole =
      label.geometry.magic == wire::kSuperMagic && label.geometry.version == label.version;
  if (!whole) {
    return Error{EIO, std::string("the superblock in the label of ") + whose.name + " is damaged"};
  }
  return label;
}

}  // namespace

uint64_t snapshot_blocks_for(const Superblock& super) {
  const uint64_t pages = pages_of(super);
  return 1 + pages + div_round_up(pages * kWordSize, kBlockSize);
}

std::vector<BlockRange> snapshot_area(const DataLabel& label, uint64_t generation) {
  const uint64_t area = generation % 2;
  std::vector<BlockRange> ranges{{label.snapshot_first_block[area], label.snapshot_blocks}};
  for (const uint64_t packed : label.geometry.log_extensions) {
    const BlockRange both = unpack_range(packed);
    if (packed != 0) ranges.push_back({both.first + area * (both.count / 2), both.count / 2});
  }
  return ranges;
}

uint64_t snapshot_capacity(const DataLabel& label) {
  uint64_t blocks = 0;
  for (const BlockRange& range : snapshot_area(label, 0)) blocks += range.count;
  return blocks;
}

DataLabel grown_label(const DataLabel& label, const Superblock& super) {
  DataLabel grown = label;
  grown.version = super.version;
  grown.geometry = super;
  grown.checksum = label_checksum(grown);
  return grown;
}

LabelPlan make_label(const Superblock& super) {
  LabelPlan plan{};
  plan.label.magic = wire::kDataMagic;
  plan.label.version = super.version;
  plan.label.geometry = super;
  plan.reserved_blocks = 1;
  if ((super.features & kFeatureMetaLog) != 0) {
    plan.label.snapshot_blocks = snapshot_blocks_for(super);
    plan.label.snapshot_first_block[0] = 1;
    plan.label.snapshot_first_block[1] = 1 + plan.label.snapshot_blocks;
    plan.label.log_first_block = 1 + 2 * plan.label.snapshot_blocks;
    plan.label.log_blocks = std::clamp(super.data_blocks / 64, kMinLogBlocks, kMaxLogBlocks);
    plan.reserved_blocks = plan.label.log_first_block + plan.label.log_blocks;
  }
  plan.label.checksum = label_checksum(plan.label);
  return plan;
}

Result<DataLabel> parse_label(ConstBytes block) {
  SFS_ASSERT(block.size() >= kBlockSize);
  const Whose whose{wire::kDataMagic, "DATA"};
  const Result<DataLabel> first = parse_copy(block, kLabelOffset[0], whose);
  const Result<DataLabel> second = parse_copy(block, kLabelOffset[1], whose);
  if (!first.ok() && !second.ok()) return first.error();
  const bool newer =
      second.ok() && (!first.ok() || second->geometry.generation > first->geometry.generation);
  return of_our_version(newer ? *second : *first, whose);
}

DataLabel make_dump_label(const Superblock& super) {
  DataLabel label{};
  label.magic = wire::kDumpMagic;
  label.version = super.version;
  label.geometry = super;
  label.log_first_block = 1;
  label.log_blocks = 1;
  label.snapshot_first_block[0] = 2;
  label.snapshot_first_block[1] = label.log_first_block;  // none: that block is zeroes
  const uint64_t pages = super.meta_size / kUnitSize;
  label.snapshot_blocks = 1 + pages + div_round_up(pages * kWordSize, kBlockSize);
  label.checksum = label_checksum(label);
  return label;
}

Result<DataLabel> parse_dump_label(ConstBytes block) {
  const Whose whose{wire::kDumpMagic, "the dump"};
  SFS_ASSIGN(const DataLabel label, parse_copy(block, 0, whose));
  SFS_TRY(of_our_version(label, whose));
  const DataLabel right = make_dump_label(label.geometry);
  if (std::memcmp(&label, &right, sizeof label) != 0) return Error{EIO, "the dump is damaged"};
  return label;
}

}  // namespace streamfs::meta
