#include "fuse-fs/data/epoch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"

namespace streamfs::data {

Epochs::Epochs(meta::Engine& engine, blockdev::Device& device, WriteCache& write_cache,
               FlushHook& flush_hook, Conditions& conditions, Health& health, Clock& clock,
               const Limits& limits)
    : engine_(engine),
      device_(device),
      write_cache_(write_cache),
      flush_hook_(flush_hook),
      conditions_(conditions),
      health_(health),
      clock_(clock),
      limits_(limits) {}

// A cached write that fails affects only its owner: that inode's commit fails and all others
// proceed.
WriteCache::Owners Epochs::write_out() {
  WriteCache::Owners failed;
  const Result<void> done = write_cache_.write_out(&failed);
  if (!done.ok()) spdlog::error("the data device failed to write: {}", done.error().message());
  return failed;
}

// The number is raised first, so that a write that completes from here on names the next flush.
Result<void> Epochs::flush_device() {
  const WriteCache::Still still(write_cache_);
  const uint64_t covered = current_.fetch_add(1, std::memory_order_acq_rel);
  WriteCache::Owners failed = write_out();
  Result<void> done = flush_hook_.before_flush();
  if (done.ok()) done = device_.flush();
  if (!done.ok()) {
    flush_hook_.flush_failed();
    health_.degrade("the data device failed to flush: " + done.error().message());
    return done;
  }
  write_cache_.flushed(std::move(failed));
  flush_hook_.after_flush();
  flushed_.store(covered, std::memory_order_release);
  closes_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// A running flush may cover the data but have begun before the record was shipped; the next flush
// covers both. Sharing that flush keeps a caller from starting a second one in parallel.
Result<void> Epochs::flush_through(uint64_t epoch, TxId through) {
  return flushes_.run_until([&] { return flushed() >= epoch && !flush_hook_.flush_helps(through); },
                            [this] { return flush_device(); });
}

// The inode stays dirty: checksums of overwritten blocks wait for the flush. No record names cached
// data: a kill would keep the record and lose its data, and no restore would check.
Result<TxId> Epochs::flush_and_commit(InodeId id, uint64_t epoch, bool data_only) {
  write_cache_.asked_for(id);
  const bool safe = write_cache_.safe(id).ok();
  if (!safe) epoch = this->epoch();  // tries again
  const bool commits = !data_only || engine_.needs_commit(id);
  if (!commits) {
    const TxId last = engine_.journal().last();
    SFS_TRY(flush_through(epoch, last));
    SFS_TRY(write_cache_.safe(id));
    return last;
  }
  if (safe && conditions_.takes_conditions() && flushed() < epoch) {
    const WriteCache::Still still(write_cache_);
    (void)write_out();
    SFS_TRY(write_cache_.safe(id));
    const auto ahead = engine_.commit_ahead(id, epoch, flushed());
    if (ahead.ok() && *ahead) {
      const TxId last = engine_.journal().last();
      SFS_TRY(flush_through(epoch, last));
      return last;
    }
  }
  SFS_TRY(flush_through(epoch));
  SFS_TRY(commit(id));
  return engine_.journal().last();
}

Result<void> Epochs::begin_writing() {
  if (!may_wait() && !flush_hook_.log_begun()) return would_wait();
  return durable_or_read_only(flush_hook_.begin_log(), health_);
}

Result<void> Epochs::before_overwrite(BlockNo first, ConstBytes blocks) {
  if (!may_wait() && forbids(first, blocks)) return would_wait();
  return durable_or_read_only(conditions_.before_overwrite(first, blocks), health_);
}

void Epochs::touched(InodeId id, uint64_t bytes, uint64_t epoch) {
  const uint64_t now = clock_.monotonic_ms();
  const MutexLock lock(mutex_);
  if (dirty_.empty()) dirty_since_ms_ = now;
  dirty_.insert(id);
  dirty_bytes_ += bytes;
  last_written_ = std::max(last_written_, epoch);
  touched_ms_ = now;
}

// Takes the inode off the list first, so that a write that finishes meanwhile puts it back.
Result<void> Epochs::commit(InodeId id) {
  if (Result<void> safe = write_cache_.safe(id); !safe.ok()) {
    touched(id, 0, 0);  // retried later
    return safe;
  }
  {
    const MutexLock lock(mutex_);
    dirty_.erase(id);
  }
  const Result<void> done = engine_.commit_inode(id, flushed());
  if (!done.ok() && (done.error().code == ENOENT || done.error().code == ESTALE)) return {};
  if (!done.ok() && done.error().code == EROFS) health_.degrade(done.error().message());
  const bool retry = done.ok() ? engine_.dirty(id) : done.error().code == ENOSPC;
  if (retry) touched(id, 0, 0);
  return done;
}

std::vector<InodeId> Epochs::take_dirty(uint64_t& last_written) {
  const MutexLock lock(mutex_);
  last_written = last_written_;
  dirty_bytes_ = 0;
  dirty_since_ms_ = clock_.monotonic_ms();  // for inodes that are put back meanwhile
  return {dirty_.begin(), dirty_.end()};
}

Result<void> Epochs::close() {
  uint64_t last_written = 0;
  const std::vector<InodeId> inodes = take_dirty(last_written);
  if (!write_cache_.all_safe()) last_written = epoch();  // the flush retries failed writes
  SFS_TRY(flush_through(last_written));
  Result<void> first;
  for (const InodeId id : inodes) {
    const Result<void> done = commit(id);
    if (done.ok()) continue;
    spdlog::error("inode {}: not committed: {}", id.value, done.error().message());
    if (first.ok()) first = done;
  }
  return first;
}

bool Epochs::due() const {
  const uint64_t now = clock_.monotonic_ms();
  const MutexLock lock(mutex_);
  // An overwrite without checksums may leave no inode dirty although its data is not flushed.
  if (dirty_.empty()) return last_written_ > flushed() && now - touched_ms_ >= limits_.idle_ms;
  return now - touched_ms_ >= limits_.idle_ms || now - dirty_since_ms_ >= limits_.age_ms ||
         dirty_bytes_ >= limits_.dirty_bytes_max || dirty_.size() >= limits_.dirty_inodes_max;
}

bool Epochs::dirty_for(uint32_t milliseconds) const {
  const MutexLock lock(mutex_);
  return !dirty_.empty() && clock_.monotonic_ms() - dirty_since_ms_ >= milliseconds;
}

size_t Epochs::dirty_inodes() const {
  const MutexLock lock(mutex_);
  return dirty_.size();
}

}  // namespace streamfs::data
