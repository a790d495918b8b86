// Plans and parses the data device's label, which says which META belongs to the device and where
// the metadata log is.
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {

struct LabelPlan {
  DataLabel label;
  uint64_t reserved_blocks;  // label, snapshots and log; data begins after them
};
// Plans the label and the log of a filesystem with this geometry. Ignores first_data_block.
LabelPlan make_label(const Superblock& super);
// Returns how many blocks a snapshot of all of META may take.
uint64_t snapshot_blocks_for(const Superblock& super);
// Returns where snapshots of this generation lie, in order: the area that mkfs made, then half of
// each extension.
std::vector<BlockRange> snapshot_area(const DataLabel& label, uint64_t generation);
uint64_t snapshot_capacity(const DataLabel& label);  // blocks
// Returns the label of a META that has grown to `super`, with the same log.
DataLabel grown_label(const DataLabel& label, const Superblock& super);

// Parses the block of the label. It has two copies of the label, each in sectors of its own. They
// are rewritten one after the other, so one of them is whole at every moment. The newer whole copy
// counts.
// Errors: EINVAL, no streamfs label, or another version, or unknown features; EIO, the label is
// damaged.
Result<DataLabel> parse_label(ConstBytes block);
// Returns the label of a dump of this filesystem's metadata. A dump has one snapshot area, and a
// log of one empty block.
DataLabel make_dump_label(const Superblock& super);
// Errors: EINVAL, no dump, or another version; EIO, the dump is damaged or unfinished.
Result<DataLabel> parse_dump_label(ConstBytes block);

}  // namespace streamfs::meta
