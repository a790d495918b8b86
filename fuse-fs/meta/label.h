// The data device's label: which META belongs to it and where its metadata log is.
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
// Label and log places of a filesystem of this geometry (first_data_block is not read).
LabelPlan make_label(const Superblock& super);
// Blocks a snapshot of all of META may take.
uint64_t snapshot_blocks_for(const Superblock& super);
// Where snapshots of this generation lie, in order: mkfs's area, then half of each extension.
std::vector<BlockRange> snapshot_area(const DataLabel& label, uint64_t generation);
uint64_t snapshot_capacity(const DataLabel& label);  // blocks
// The same log, for a META that has grown.
DataLabel grown_label(const DataLabel& label, const Superblock& super);

// The block that holds the label has two copies of it, each in sectors of its own: rewritten one
// after the other, one is whole at every moment. The newer whole one counts.
// EINVAL: no streamfs label; EIO: a damaged one.
Result<DataLabel> parse_label(ConstBytes block);
// The label of a dump of this filesystem's metadata: one snapshot area, its log of one block empty.
DataLabel make_dump_label(const Superblock& super);
// EINVAL: no dump, or of another version; EIO: a damaged or unfinished one.
Result<DataLabel> parse_dump_label(ConstBytes block);

}  // namespace streamfs::meta
