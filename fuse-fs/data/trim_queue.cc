#include "fuse-fs/data/trim_queue.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "emulator/trace/trace.h"
#include "pmem/region.h"

namespace streamfs::data {

TrimQueue::TrimQueue(pmem::Region& region, meta::Engine& engine, blockdev::Device& device,
                     placement::Placement& placement, DurabilityBarrier& barrier, Health& health,
                     TraceRecorder& trace, bool discard)
    : region_(region),
      engine_(engine),
      device_(device),
      placement_(placement),
      barrier_(barrier),
      health_(health),
      trace_(trace),
      discard_(discard) {}

Result<void> TrimQueue::drain() {
  if (pending_blocks() == 0) return {};
  return passes_.run([this] { return pass(); });
}

Result<void> TrimQueue::pass() {
  engine_.journal().checkpoint();
  const TxId home = engine_.journal().watermark();
  SFS_TRY(barrier_.settle(engine_.journal().last()));
  engine_.blocks().release_up_to(home);
  std::vector<meta::BlockRun> batch;
  while (next_batch(batch)) {
    meta::Transaction tx(region_);
    for (const meta::BlockRun& run : batch) {
      trim(run);
      tx.run(run.first, run.count, meta::RunKind::kTrimmed);
    }
    const Result<TxId> committed = engine_.journal().commit(tx);
    if (!committed.ok()) {
      health_.degrade("trimmed blocks not journalled: " + committed.error().message());
      return committed.error();
    }
    for (const meta::BlockRun& run : batch) engine_.blocks().trimmed(run);
  }
  return {};
}

bool TrimQueue::next_batch(std::vector<meta::BlockRun>& batch) {
  const uint64_t unit = std::max<uint64_t>(device_.info().erase_unit_blocks, 1);
  const uint64_t most = std::max(unit, round_down(kTrimBlocksMax, unit));
  batch.clear();
  while (batch.size() < kBatchRuns) {
    const auto run = engine_.blocks().next_trim(most);
    if (!run) break;
    batch.push_back(*run);
  }
  return !batch.empty();
}

void TrimQueue::trim(const meta::BlockRun& run) {
  placement_.trimmed(run.first, run.count);
  trace_.record(emulator::TraceOp::kTrim, run.first, run.count, kDefaultVStream, kDefaultVStream,
                trace_.next_request(), kDefaultPStream);
  if (!discard_.load(std::memory_order_relaxed)) return;
  const Result<void> done = device_.trim(run.first, run.count);
  if (done.ok()) return;
  spdlog::warn("trim of {} blocks at {}: {}", run.count, run.first.value, done.error().message());
  if (done.error().code == EOPNOTSUPP) discard_.store(false, std::memory_order_relaxed);
}

}  // namespace streamfs::data
