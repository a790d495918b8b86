// Epochs: writes completed between two device flushes become durable together, with the second.
//
//   write completes on the device, or is cached → epoch() names the flush that will cover it
//   flush_through(e): one flush, shared by everyone who waits → flushed() ≥ e
//   commit(inode): its current view up to flushed() becomes committed
//
// Thread safety: any thread. No lock is held across the flush.
// What a crash leaves: of an inode, what was committed: data flushed before.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/durability.h"
#include "fuse-fs/data/group_run.h"
#include "fuse-fs/data/health.h"
#include "fuse-fs/data/write_cache.h"
#include "fuse-fs/meta/engine.h"

namespace streamfs::data {

class Epochs {
 public:
  struct Limits {
    uint32_t idle_ms = 1000, age_ms = 5000;
    uint64_t dirty_bytes_max = 512ULL << 20;
    size_t dirty_inodes_max = 8192;
  };
  Epochs(meta::Engine& engine, blockdev::Device& device, WriteCache& write_cache,
         FlushHook& flush_hook, Conditions& conditions, Health& health, Clock& clock,
         const Limits& limits);

  // Of a write that has completed on the device now.
  uint64_t epoch() const { return current_.load(std::memory_order_acquire); }
  uint64_t flushed() const { return flushed_.load(std::memory_order_acquire); }
  // Returns once a flush covers `epoch` and every record up to `through` that goes out with a
  // flush is durable.
  Result<void> flush_through(uint64_t epoch, TxId through = {});
  // What the inode had written up to `epoch` is flushed and committed; of data_only, committed only
  // if it could not be read back otherwise. With one flush, where records may be conditional and
  // it is little. Returns the last record that this takes.
  Result<TxId> flush_and_commit(InodeId id, uint64_t epoch, bool data_only);
  // Before anything on DATA changes.
  Result<void> begin_writing();
  // Returns whether before_overwrite() would wait for a flush of these blocks.
  bool forbids(BlockNo first, ConstBytes blocks) const {
    return conditions_.forbids(first, blocks);
  }
  // Returns once these bytes may be written: they break no open condition (durability.h).
  Result<void> before_overwrite(BlockNo first, ConstBytes blocks);

  // The inode has changes that wait for a commit; `epoch` is that of its data, 0 if there is none.
  void touched(InodeId id, uint64_t bytes, uint64_t epoch);
  // Commits what flushed() covers. ok also when the inode is gone. EIO: not all of it was written.
  Result<void> commit(InodeId id);
  // Flushes, if any data is not, and commits every dirty inode; the first error, after trying all.
  Result<void> close();
  bool due() const;                             // idle, old or big enough to close
  bool dirty_for(uint32_t milliseconds) const;  // since the last one closed, or the first write
  size_t dirty_inodes() const;
  uint64_t closed() const { return closes_.load(std::memory_order_relaxed); }

 private:
  WriteCache::Owners write_out();
  Result<void> flush_device();
  std::vector<InodeId> take_dirty(uint64_t& last_written);

  meta::Engine& engine_;
  blockdev::Device& device_;
  WriteCache& write_cache_;  // beneath it
  FlushHook& flush_hook_;
  Conditions& conditions_;
  Health& health_;
  Clock& clock_;
  const Limits limits_;
  std::atomic<uint64_t> current_{1}, flushed_{0}, closes_{0};
  GroupRun flushes_;
  mutable Mutex mutex_;  // leaf
  std::unordered_set<InodeId> dirty_ SFS_GUARDED_BY(mutex_);
  uint64_t dirty_bytes_ SFS_GUARDED_BY(mutex_) = 0;
  uint64_t last_written_ SFS_GUARDED_BY(mutex_) = 0;  // epoch of the newest data
  uint64_t dirty_since_ms_ SFS_GUARDED_BY(mutex_) = 0, touched_ms_ SFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace streamfs::data
