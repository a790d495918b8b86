// The data floor's state of an inode in memory, beside the engine's view.
// Thread safety: any thread. Memory: get() drops entries when there are many, except those in use,
// with unflushed data, or with an inferred vStream that a hint overrides. After a crash: memory
// only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse-fs/data/range_lock.h"

namespace streamfs::data {

struct InodeState {
  RangeLock blocks;                     // in file blocks; before every other lock
  std::atomic<uint64_t> last_epoch{0};  // of the newest completed write
  // The inferred vStream, which a hint overrides, with its generation << 16 (placement.h).
  std::atomic<uint32_t> inferred{0};

  void wrote_in(uint64_t epoch) {
    uint64_t old = last_epoch.load(std::memory_order_relaxed);
    while (old < epoch && !last_epoch.compare_exchange_weak(old, epoch)) {
    }
  }
};

class InodeStates {
 public:
  // shared_ptr: a forget may come while another request still uses the inode's lock.
  std::shared_ptr<InodeState> get(InodeId id);
  // Data up to this epoch is durable: get() may drop entries without newer data.
  void flushed(uint64_t epoch) { flushed_.store(epoch, std::memory_order_relaxed); }
  // Drops the entry unless it is in use or has data that `flushed` does not cover.
  void release(InodeId id, uint64_t flushed);

 private:
  static constexpr size_t kShards = 64, kSweptAt = 1024;
  struct alignas(kLineSize) Shard {  // has its own cache lines
    Mutex mutex;                     // leaf
    std::unordered_map<InodeId, std::shared_ptr<InodeState>> states SFS_GUARDED_BY(mutex);
    size_t swept_at SFS_GUARDED_BY(mutex) = kSweptAt;  // get() sweeps at this size
  };
  void sweep(Shard& at) SFS_REQUIRES(at.mutex);
  Shard& shard(InodeId id) { return shards_[id.value % kShards]; }
  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> flushed_{0};
};

}  // namespace streamfs::data
