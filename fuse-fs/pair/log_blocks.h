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
  virtual PStreamId stream(uint64_t blocks);  // of the next write; here the device's last pStream

 private:
  blockdev::Device& device_;
};

}  // namespace streamfs::pair
