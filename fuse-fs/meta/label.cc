#include "fuse-fs/meta/label.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/image.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kMinLogBlocks = 1024;   // 4 MiB
constexpr uint64_t kMaxLogBlocks = 16384;  // 64 MiB

// Pages a snapshot may hold: everything but superblocks, rings and checksums, with its index.
uint64_t snapshot_blocks(const Superblock& super) {
  uint64_t bytes = 0;
  for (const RegionKind kind : {RegionKind::kBlockBitmap, RegionKind::kUntrimmed,
                                RegionKind::kHeapMap, RegionKind::kHeap, RegionKind::kVStreams}) {
    for (const Segment& s : super.regions[static_cast<size_t>(kind)].segments) bytes += s.length;
  }
  const uint64_t pages = bytes / kUnitSize;
  return 1 + pages + div_round_up(pages * kWordSize, kBlockSize);
}

struct Whose {
  uint64_t magic;
  const char* name;
};

Result<DataLabel> parse(ConstBytes block, const Whose& whose) {
  DataLabel label;
  SFS_ASSERT(block.size() >= sizeof(label));
  std::memcpy(&label, block.data(), sizeof(label));
  if (label.magic != whose.magic) {
    return Error{EINVAL, std::string(whose.name) + " holds no streamfs filesystem"};
  }
  if (label.checksum != label_checksum(label)) {
    return Error{EIO, std::string("the label of ") + whose.name + " is damaged"};
  }
  if (label.version != kFormatVersion) {
    return Error{EINVAL, std::string(whose.name) + " has format version " +
                             std::to_string(label.version) + ", this streamfs knows " +
                             std::to_string(kFormatVersion)};
  }
  return label;
}

}  // namespace

LabelPlan make_label(const Superblock& super) {
  LabelPlan plan{};
  plan.label.magic = kDataMagic;
  plan.label.version = kFormatVersion;
  plan.label.geometry = super;
  plan.reserved_blocks = 1;
  if ((super.features & kFeatureMetaLog) != 0) {
    plan.label.snapshot_blocks = snapshot_blocks(super);
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
  return parse(block, {kDataMagic, "DATA"});
}

DataLabel make_dump_label(const Superblock& super) {
  DataLabel label{};
  label.magic = kDumpMagic;
  label.version = kFormatVersion;
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
  return parse(block, {kDumpMagic, "the dump"});
}

}  // namespace streamfs::meta
