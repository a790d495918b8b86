#include "fuse-fs/data/epoch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "pmem/flushed.h"

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
//
// With an intent log, data may be cached during a flush. It names the next epoch, too.
Result<void> Epochs::flush_device() {
  std::optional<WriteCache::Still> still;
  if (!logs()) still.emplace(write_cache_);
  const uint64_t covered = current_.fetch_add(1, std::memory_order_acq_rel);
  WriteCache::Owners failed;
  {
    const WriteCache::Cut cut(write_cache_);
    flush_hook_.cut();
    failed = write_out();
  }
  const uint64_t written_out = write_cache_.written_out();
  const bool all_written = failed.empty();
  Result<void> done = flush_hook_.before_flush();
  if (done.ok()) done = device_.flush();
  if (!done.ok()) {
    flush_hook_.flush_failed();
    health_.degrade("the data device failed to flush: " + done.error().message());
    return done;
  }
  write_cache_.flushed(std::move(failed), written_out);
  flush_hook_.after_flush(all_written);
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

Result<void> Epochs::flush_again() {
  return flushes_.run([this] { return flush_device(); });
}

Result<void> Epochs::settle_zeroed() {
  if (!logs()) return {};
  return durable_or_read_only(conditions_.settle(engine_.journal().last()), health_);
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

void Epochs::touched(InodeId id, uint64_t bytes, uint64_t epoch, Where where) {
  const uint64_t now = clock_.monotonic_ms();
  const MutexLock lock(mutex_);
  if (dirty_.empty()) dirty_since_ms_ = now;
  dirty_.insert(id);
  dirty_bytes_ += bytes;
  last_written_ = std::max(last_written_, epoch);
  if (where == Where::kDevice) last_on_device_ = std::max(last_on_device_, epoch);
  touched_ms_ = now;
}

void Epochs::taken_off(InodeId id) {
  const MutexLock lock(mutex_);
  dirty_.erase(id);
}

// Puts an inode back on the list whose commit has to be tried again.
template <typename Done>
Result<void> Epochs::after_commit(InodeId id, const Done& done) {
  if (!done.ok() && (done.error().code == ENOENT || done.error().code == ESTALE)) return {};
  if (!done.ok() && done.error().code == EROFS) health_.degrade(done.error().message());
  const bool retry = done.ok() ? engine_.dirty(id) : done.error().code == ENOSPC;
  if (retry) touched(id, 0, 0);
  return done.ok() ? Result<void>() : done.error();
}

// Takes the inode off the list first, so that a write that finishes meanwhile puts it back.
Result<void> Epochs::commit(InodeId id) {
  if (Result<void> safe = write_cache_.safe(id); !safe.ok()) {
    touched(id, 0, 0);  // retried later
    return safe;
  }
  taken_off(id);
  return after_commit(id, engine_.commit_inode(id, flushed()));
}

Result<bool> Epochs::commit_logged(InodeId id, pmem::Flushed entries) {
  taken_off(id);
  const Result<bool> done = engine_.commit_logged(id, epoch(), std::move(entries));
  SFS_TRY(after_commit(id, done));
  return !done.ok() || *done;  // an inode that is gone needs no commit
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
  if (dirty_.empty()) return last_on_device_ > flushed() && now - touched_ms_ >= limits_.idle_ms;
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
