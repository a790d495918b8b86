#include "fuse-fs/data/absorber.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "fuse-fs/data/range_lock.h"

namespace streamfs::data {

// A refused try is repeated on a thread that may wait, and is counted there.
bool Absorber::refuse(Reason reason) {
  if (may_wait()) counters_.add(reason, 1);
  return false;
}

// The range keeps writes of the file away, so that all its data in the current view is either in
// the cache or on the device.
Result<bool> Absorber::absorb(InodeId id, InodeState& state, bool data_only) {
  SFS_TRY(core_.epochs.begin_writing());
  state.logged_max.store(bytes_max() / kBlockSize, std::memory_order_relaxed);
  const RangeLock::Guard guard(state.blocks, 0, RangeLock::kToTheEnd, RangeLock::Access::kShared);
  if (!guard) return would_wait();
  const MutexLock one_at_a_time(state.absorbing);
  return absorb_locked(id, state, data_only);
}

Result<bool> Absorber::absorb_locked(InodeId id, InodeState& state, bool data_only) {
  core_.write_cache.asked_for(id);
  const uint64_t blocks = core_.write_cache.unlogged(id);
  if (blocks == 0 && data_only && !core_.engine.needs_commit(id) &&
      state.last_epoch.load(std::memory_order_acquire) <= core_.epochs.flushed()) {
    SFS_TRY(acknowledge());
    return true;
  }
  if (state.device_epoch.load(std::memory_order_acquire) > core_.epochs.flushed())
    return refuse(kOnDevice);
  if (blocks * kBlockSize > bytes_max()) return refuse(kLarge);
  if (!barrier_.takes_entries()) return refuse(kOld);
  SFS_ASSIGN(const bool committed, commit(id, blocks));
  if (committed) SFS_TRY(acknowledge());
  return committed;
}

Result<void> Absorber::acknowledge() {
  return durable_or_read_only(barrier_.acknowledge(core_.engine.journal().last()), core_.health);
}

Result<bool> Absorber::commit(InodeId id, uint64_t blocks) {
  if (blocks == 0) {
    SFS_ASSIGN(const bool done, core_.epochs.commit_logged(id, {}));
    return done || refuse(kLarge);
  }
  const auto batch = barrier_.log().begin(blocks);
  if (batch == nullptr) return refuse(kFull);
  const std::vector<BlockNo> logged = core_.write_cache.log(id, blocks, *batch);
  barrier_.took_entries();
  const Result<bool> done = core_.epochs.commit_logged(id, batch->flushed());
  if (!done.ok() || !*done) {
    core_.write_cache.not_logged(logged);
    return done.ok() ? refuse(kLarge) : done;
  }
  batch->keep();
  counters_.add(kFsyncs, 1);
  return true;
}

Absorber::Counts Absorber::counts() const {
  Counts out;
  for (size_t i = 0; i < kReasons; ++i) out.refused[i] = counters_.sum(static_cast<Reason>(i));
  out.fsyncs = counters_.sum(kFsyncs);
  return out;
}

}  // namespace streamfs::data
