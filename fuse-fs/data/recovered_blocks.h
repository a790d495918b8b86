// A device that shows the blocks which a crash left in the intent log, over what DATA has. It lies
// beneath the write cache. Before the first change of DATA, bring_home() writes them to DATA.
// Thread safety: any thread. Requires: take() comes before all other calls.
// After a crash: the blocks are in the intent log until it starts anew.
#pragma once

#include <cstdint>
#include <map>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"
#include "fuse-fs/meta/intent_log.h"

namespace streamfs::data {

class RecoveredBlocks final : public blockdev::ForwardingDevice {
 public:
  explicit RecoveredBlocks(blockdev::Device& beneath) : ForwardingDevice(beneath) {}

  // Shows the blocks that open() found in this log, which outlives their last read.
  void take(const meta::IntentLog& log);
  // Writes the blocks to DATA and flushes it. From then on DATA itself is shown. Errors: those of
  // the device; the blocks are then shown as before.
  Result<void> bring_home();
  uint64_t blocks() const;

  void read(BlockNo first, Bytes bytes, blockdev::Completion done) override;

 private:
  mutable SharedMutex mutex_;  // leaf
  const meta::IntentLog* log_ = nullptr;
  std::map<uint64_t, meta::IntentLog::Found> found_ SFS_GUARDED_BY(mutex_);  // by block
};

}  // namespace streamfs::data
