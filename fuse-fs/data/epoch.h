// An epoch is the time between two device flushes. The second flush makes all writes that completed
// in the epoch durable together.
//
//   write completes on the device, or is cached → epoch() names the flush that will cover it
//   flush_through(e): one flush, shared by all waiting threads → flushed() ≥ e
//   commit(inode): its current view up to flushed() becomes committed
//
// Thread safety: any thread. No lock of the engine is held across the flush, and the caller holds
// none. A caller may hold ranges of files. After a failed flush the filesystem is read-only.
// After a crash: each inode is as its last durable commit has it. An ordinary commit names data
// that is flushed or in the intent log. A conditional record may name other data, and counts only
// if that data is there.
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
#include "pmem/flushed.h"

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

  // Returns the epoch of a write that completed on the device, or was cached, before the call.
  uint64_t epoch() const { return current_.load(std::memory_order_acquire); }
  uint64_t flushed() const { return flushed_.load(std::memory_order_acquire); }
  // Returns once a flush covers `epoch`. With a metadata log, every record up to `through` is then
  // durable in the log, too. Errors: those of the flush.
  Result<void> flush_through(uint64_t epoch, TxId through = {});
  // Flushes the inode's data up to `epoch` and commits the inode. If `data_only`, it commits only
  // if the data could not be read back otherwise (Engine::needs_commit()). If a conditional record
  // can hold the commit, one flush makes data and record durable. Returns the last record that the
  // caller has to make durable. Errors: EIO, a cached write of the inode failed; those of the flush
  // and of commit().
  Result<TxId> flush_and_commit(InodeId id, uint64_t epoch, bool data_only);
  // Begins the metadata log, if there is one and it has not begun. Call it before each change of
  // DATA. In a Trying (base/waiting.h), returns would_wait() if the log has to begin. Errors: those
  // of the log; they make the filesystem read-only.
  Result<void> begin_writing();
  // Returns whether before_overwrite() would wait for a flush of these blocks.
  bool forbids(BlockNo first, ConstBytes blocks) const {
    return conditions_.forbids(first, blocks);
  }
  // Returns once these bytes may be written, because they break no open condition (durability.h).
  // May flush; returns would_wait() instead in a Trying. Errors: those of the flush; they make the
  // filesystem read-only.
  Result<void> before_overwrite(BlockNo first, ConstBytes blocks);

  // Flushes once, in a flush that begins after the call: with an intent log, one round.
  Result<void> flush_again();
  // Returns whether META has an intent log that serves.
  bool logs() const { return conditions_.moves_overwrites(); }
  // Calls Engine::commit_logged() with the current epoch. Errors: those of commit(), but for EIO.
  Result<bool> commit_logged(InodeId id, pmem::Flushed entries);
  // With an intent log, settles everything committed, for a zeroing of blocks that stay a file's.
  // Without one it does nothing: before_overwrite() looks at each block.
  Result<void> settle_zeroed();

  // Returns whether flush_and_commit() would wait for no device.
  bool commits_at_once(InodeId id, uint64_t epoch) const {
    return flushed() >= epoch && write_cache_.safe(id).ok();
  }

  // Marks the inode dirty, as it has uncommitted changes. `bytes` of new data were written in
  // `epoch`; 0 and 0: no new data. kDevice: some of the data is not in the write cache.
  enum class Where : uint8_t { kCache, kDevice };
  void touched(InodeId id, uint64_t bytes, uint64_t epoch, Where where = Where::kDevice);
  // Commits the inode as far as flushed() covers its data. Succeeds if the inode is gone. Errors:
  // EIO, a cached write of the inode failed; those of Engine::commit_inode(). After EIO and ENOSPC
  // the inode stays dirty.
  Result<void> commit(InodeId id);
  // Flushes unflushed data, then commits every dirty inode. If the flush fails, returns its error
  // and commits none. Otherwise tries all commits, logs their errors and returns the first.
  Result<void> close();
  bool due() const;  // returns whether the epoch is idle, old or large enough to close (Limits)
  // Returns whether an inode is dirty, and the last close() or the first change after it is at
  // least so long ago.
  bool dirty_for(uint32_t milliseconds) const;
  size_t dirty_inodes() const;
  uint64_t closed() const { return closes_.load(std::memory_order_relaxed); }  // flushes so far

 private:
  WriteCache::Owners write_out();
  Result<void> flush_device();
  void taken_off(InodeId id);
  template <typename Done>
  Result<void> after_commit(InodeId id, const Done& done);
  std::vector<InodeId> take_dirty(uint64_t& last_written);

  meta::Engine& engine_;
  blockdev::Device& device_;
  WriteCache& write_cache_;  // beneath device_
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
  uint64_t last_written_ SFS_GUARDED_BY(mutex_) = 0;    // epoch of the newest data
  uint64_t last_on_device_ SFS_GUARDED_BY(mutex_) = 0;  // of the newest that no cache holds
  uint64_t dirty_since_ms_ SFS_GUARDED_BY(mutex_) = 0, touched_ms_ SFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace streamfs::data
