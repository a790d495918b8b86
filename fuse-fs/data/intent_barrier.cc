#include "fuse-fs/data/intent_barrier.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::data {
namespace {

void raise(std::atomic<uint64_t>& to, uint64_t value) {
  uint64_t old = to.load(std::memory_order_relaxed);
  while (old < value && !to.compare_exchange_weak(old, value, std::memory_order_acq_rel)) {
  }
}

}  // namespace

IntentBarrier::IntentBarrier(const Parts& parts, std::unique_ptr<meta::IntentLog> log)
    : parts_(parts), intent_(std::move(log)), blocks_(parts.device, parts.trims) {}

Result<std::unique_ptr<IntentBarrier>> IntentBarrier::make(const Parts& parts,
                                                           std::unique_ptr<meta::IntentLog> log,
                                                           const meta::DataLabel* label) {
  std::unique_ptr<IntentBarrier> made(new IntentBarrier(parts, std::move(log)));
  if (label == nullptr) return made;
  const meta::Geometry& geometry = parts.engine.geometry();
  const uint64_t end = geometry.super().log_end;  // as the mount found it
  SFS_ASSIGN(made->metadata_,
             meta::MetadataLog::attach(parts.region, geometry, parts.engine.journal(),
                                       made->blocks_, *label, end));
  made->metadata_->follow_data(
      [raw = made.get()](bool commits_stopped) { return raw->bring_home(commits_stopped); });
  return made;
}

// Blocks that a crash left in the log go home first, because a snapshot of META names them.
Result<void> IntentBarrier::begin_log() {
  if (log_begun()) return {};
  const MutexLock lock(beginning_);
  if (damaged()) SFS_TRY(parts_.region.sync());  // a snapshot is made of a whole copy
  if (begun_.load(std::memory_order_acquire)) return {};
  SFS_TRY(parts_.recovered.bring_home());
  intent_->start();
  const TxId last = parts_.engine.journal().quiesce();
  raise(home_, last.value);
  if (metadata_) {
    metadata_->data_is_home(last);
    SFS_TRY(metadata_->begin());
  }
  begun_.store(true, std::memory_order_release);
  return {};
}

// ---- Rounds

// The order counts: every record up to `record` has its entries among those up to `entry`, and the
// write cache had the data of both when a Cut of it began.
IntentBarrier::Round IntentBarrier::begin_round(bool commits_stopped) {
  meta::Journal& journal = parts_.engine.journal();
  Round round;
  round.begun_ms = parts_.clock.monotonic_ms();
  round.record = commits_stopped ? journal.last() : journal.quiesce();
  round.entry = intent_->cut();
  return round;
}

void IntentBarrier::is_home(const Round& round) {
  intent_->expire(round.entry);
  raise(home_, round.record.value);
  // An fsync meanwhile may have stored an entry that is younger than the round.
  uint64_t oldest = oldest_ms_.load(std::memory_order_relaxed);
  while (oldest != 0 && oldest <= round.begun_ms &&
         !oldest_ms_.compare_exchange_weak(oldest,
                                           intent_->used_bytes() > 0 ? round.begun_ms + 1 : 0)) {
  }
}

void IntentBarrier::cut() {
  current_ = begin_round(false);
}

Result<void> IntentBarrier::before_flush() {
  shipped_ = {};
  SFS_TRY(begin_log());
  if (!metadata_) return {};
  const Result<meta::MetadataLog::Shipped> shipped = metadata_->ship();
  if (!shipped.ok() && shipped.error().code == EAGAIN) return {};  // a later round ships it
  SFS_TRY(shipped);
  shipped_ = *shipped;
  return {};
}

void IntentBarrier::after_flush(bool all_written) {
  if (metadata_) metadata_->made_durable(shipped_);
  if (!all_written) return;
  is_home(current_);
  if (metadata_) metadata_->data_is_home(current_.record);
}

// The metadata log calls this before a snapshot counts. It is no flush of an epoch: the write cache
// keeps what it writes until such a flush.
Result<TxId> IntentBarrier::bring_home(bool commits_stopped) {
  Round round;
  {
    const WriteCache::Cut cut(parts_.write_cache);
    round = begin_round(commits_stopped);
    const Result<void> written = parts_.write_cache.write_out();
    if (!written.ok()) return Error{EAGAIN, written.error().message()};
  }
  SFS_TRY(blocks_.flush());
  is_home(round);
  return round.record;
}

// A round brings data home, and the next one ships its records. More are needed if a write fails.
Result<void> IntentBarrier::run_rounds(const std::function<bool()>& done) {
  constexpr int kRounds = 5;
  for (int i = 0; i < kRounds; ++i) {
    if (done()) return {};
    SFS_TRY(round_());
  }
  if (done()) return {};
  return Error{kNotHome, "data in the intent log cannot be written to DATA"};
}

// ---- Promises

bool IntentBarrier::takes_entries() const {
  const uint64_t oldest = oldest_ms_.load(std::memory_order_relaxed);
  return oldest == 0 || parts_.clock.monotonic_ms() < oldest + kAgeMaxMs;
}

void IntentBarrier::took_entries() {
  uint64_t none = 0;
  if (oldest_ms_.load(std::memory_order_relaxed) == 0)
    oldest_ms_.compare_exchange_strong(none, parts_.clock.monotonic_ms());
}

Result<void> IntentBarrier::acknowledge(TxId through) {
  raise(promised_, through.value);
  return damaged() ? make_durable(through) : Result<void>();
}

Result<void> IntentBarrier::make_durable(TxId through) {
  if (damaged()) SFS_TRY(parts_.region.sync());
  SFS_TRY(begin_log());
  return run_rounds([&] { return reusable() >= through; });
}

Result<void> IntentBarrier::before_overwrite(BlockNo first, ConstBytes blocks) {
  return forbids(first, blocks) ? settle(promised()) : Result<void>();
}

Result<void> IntentBarrier::renew() {
  SFS_TRY(begin_log());
  return metadata_ ? metadata_->renew() : Result<void>();
}

bool IntentBarrier::crowded() const {
  return 2 * intent_->used_bytes() > intent_->bytes() || parts_.write_cache.crowded();
}

void IntentBarrier::grow(const meta::DataLabel& label) {
  if (metadata_) metadata_->grow(label);
}

}  // namespace streamfs::data
