// Freed blocks on their way back: checkpoint, make the frees durable, trim, journal, reusable.
//
// Order: no block is trimmed before the record that freed it is home and survives a power cut, and
// none is allocatable before its trim has ended and is journalled (meta/block_allocator.h).
// Thread safety: any thread; pass() may wait. What a crash leaves: blocks whose trim was not
// journalled are trimmed again.
#pragma once

#include <atomic>
#include <vector>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/durability.h"
#include "fuse-fs/data/group_run.h"
#include "fuse-fs/data/health.h"
#include "fuse-fs/data/trace_recorder.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/placement/placement.h"
#include "pmem/region.h"

namespace streamfs::data {

class TrimQueue {
 public:
  TrimQueue(pmem::Region& region, meta::Engine& engine, blockdev::Device& device,
            placement::Placement& placement, DurabilityBarrier& barrier, Health& health,
            TraceRecorder& trace, bool discard);

  // Trims everything that was freed before the call, shared by those who wait. A failed trim is
  // logged and counted as done: the data is dead all the same.
  Result<void> drain();
  uint64_t pending_blocks() const { return engine_.blocks().pending_blocks(); }

 private:
  static constexpr uint64_t kTrimBlocksMax = 16384;  // 64 MiB a command
  static constexpr size_t kBatchRuns = 256;          // a record
  Result<void> pass();
  bool next_batch(std::vector<meta::BlockRun>& batch);
  void trim(const meta::BlockRun& run);

  pmem::Region& region_;
  meta::Engine& engine_;
  blockdev::Device& device_;
  placement::Placement& placement_;
  DurabilityBarrier& barrier_;
  Health& health_;
  TraceRecorder& trace_;
  std::atomic<bool> discard_;
  GroupRun passes_;
};

}  // namespace streamfs::data
