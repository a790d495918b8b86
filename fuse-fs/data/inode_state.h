// State of an inode that fuse-fs/data keeps in memory, beside the engine's view.
// Thread safety: any thread. Memory: if there are many entries, get() drops all that it may. It
// keeps an entry that is in use, that has unflushed data, or that has an inferred vStream.
// After a crash: memory only.
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
  std::atomic<uint64_t> last_epoch{0};  // epoch of the newest completed write (epoch.h)
  // The vStream that placement inferred before a hint replaced it, with its generation << 16
  // (placement.h). 0: the file never had a hint.
  std::atomic<uint32_t> inferred{0};

  // ---- With an intent log (absorber.h)
  Mutex absorbing;                        // after `blocks`, before the engine's locks
  std::atomic<uint64_t> device_epoch{0};  // of the newest write that no cache holds
  // The most blocks that an fsync of the file logs. 0: no fsync of it was asked for.
  std::atomic<uint64_t> logged_max{0};

  void wrote_in(uint64_t epoch) { raise(last_epoch, epoch); }
  void wrote_to_device_in(uint64_t epoch) { raise(device_epoch, epoch); }

 private:
  static void raise(std::atomic<uint64_t>& to, uint64_t epoch) {
    uint64_t old = to.load(std::memory_order_relaxed);
    while (old < epoch && !to.compare_exchange_weak(old, epoch)) {
    }
  }
};

class InodeStates {
 public:
  // shared_ptr: a forget may come while another request still uses the inode's lock.
  std::shared_ptr<InodeState> get(InodeId id);
  // Says that data up to this epoch is durable, so get() may drop entries without newer data.
  void flushed(uint64_t epoch) { flushed_.store(epoch, std::memory_order_relaxed); }
  // Drops the entry unless it is in use or has data newer than epoch `flushed`. Unlike get(), this
  // also drops an entry that has an inferred vStream.
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
