// How often META and DATA were attached to each other, kept on both: what tells the half that was
// mounted last from a copy of it that stood still meanwhile.
//
//   mount     META: n + 1, synced ──► DATA: n + 1, flushed
//   unmount   META: n + 2, synced ──► DATA: n + 2, flushed
//
// Thread safety: none; only mounting and unmounting call these. Crash: META may be ahead by one,
// never behind. On DATA the count has the label's last sector to itself: the others are written
// again as they are, so that a torn write cannot damage them.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/filesystem_impl.h"

namespace streamfs::data {

// Nothing: DATA says none, as one that was made before there was a count, or none that is whole.
Result<std::optional<uint64_t>> read_attachments(blockdev::Device& device);
Result<void> write_attachments(blockdev::Device& device, uint64_t count);

// One more on both, META first; its superblock is then `pair.super`.
Result<void> attach(OpenPair& pair);

}  // namespace streamfs::data
