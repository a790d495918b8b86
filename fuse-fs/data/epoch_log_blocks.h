// The metadata log's blocks as the log reads and writes them under a mount. If flushes pad pages,
// the log writes to the pStream of the epoch's data, so that both share the padded pages.
// Thread safety: as the device's. After a crash: see meta/metadata_log.h.
#pragma once

#include <cstdint>

#include "base/types.h"
#include "fuse-fs/data/epoch_stream.h"
#include "fuse-fs/pair/log_blocks.h"

namespace streamfs::data {

// DATA in a file is not trimmed: a trim would punch a hole, and the flush after the log reuses it
// would wait for block allocation.
class EpochLogBlocks final : public pair::LogBlocks {
 public:
  EpochLogBlocks(EpochStream& device, bool trims)
      : pair::LogBlocks(device), device_(device), trims_(trims && device.info().kind != "file") {}
  void discard(BlockNo first, uint64_t count) override {
    if (trims_) (void)device_.trim(first, count);  // without it the blocks are dead all the same
  }

 private:
  PStreamId stream(uint64_t blocks) override {
    return device_.of(pair::LogBlocks::stream(blocks), blocks);
  }

  EpochStream& device_;
  const bool trims_;
};

}  // namespace streamfs::data
