// The data device's label: which META belongs to it and where its metadata log is.
// Thread safety: pure functions.
#pragma once

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
// EINVAL: no streamfs label; EIO: a damaged one.
Result<DataLabel> parse_label(ConstBytes block);
// The label of a dump of this filesystem's metadata: one snapshot area, its log of one block empty.
DataLabel make_dump_label(const Superblock& super);
// EINVAL: no dump, or of another version; EIO: a damaged or unfinished one.
Result<DataLabel> parse_dump_label(ConstBytes block);

}  // namespace streamfs::meta
