// The blocks of DATA as the metadata log reads and writes them.
// Thread safety: as the device's.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/meta/metadata_log.h"

namespace streamfs::pair {

// Reads and writes synchronously, in a vStream of the log's own.
class LogBlocks : public meta::LogDevice {
 public:
  explicit LogBlocks(blockdev::Device& device) : device_(device) {}
  Result<void> write(BlockNo first, ConstBytes bytes) override;
  Result<void> read(BlockNo first, Bytes bytes) override;
  Result<void> flush() override;

 protected:
  // Returns the pStream for a write of `blocks` blocks. LogBlocks itself always returns the
  // device's pStream of the highest number.
  virtual PStreamId stream(uint64_t blocks);

 private:
  blockdev::Device& device_;
};

}  // namespace streamfs::pair
