#include "fuse-fs/data/maintenance.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/event.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::data {

Maintenance::Maintenance(Core& core, Durability& durability, TrimQueue& trims, Clock& clock)
    : core_(core), durability_(durability), trims_(trims), clock_(clock) {}

void Maintenance::start() {
  timer_ = std::thread([this] { timer_loop(); });
  reclaimer_ = std::thread([this] { reclaim_loop(); });
}

void Maintenance::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  stopping_changed_.notify_all();
  const TrimQueue::Haste haste(trims_, TrimQueue::Pace::kLeaves);
  if (timer_.joinable()) timer_.join();
  if (reclaimer_.joinable()) reclaimer_.join();
}

bool Maintenance::wait(uint32_t milliseconds) {
  const MutexLock lock(mutex_);
  if (!stopping_) {
    stopping_changed_.wait_for(mutex_, std::chrono::milliseconds(milliseconds));
  }
  return !stopping_;
}

void Maintenance::timer_loop() {
  while (wait(kTimerMs)) timer_round();
}

void Maintenance::timer_round() {
  look_at_device();
  if (!core_.health.writable().ok()) return;
  if (core_.epochs.due()) close_epoch();
  const uint64_t now = clock_.monotonic_ms();
  bool sync = durability_.damaged();
  const bool due = now - namespace_synced_ms_ >= durability_.delay_ms() || durability_.crowded();
  if (durability_.waits() && due) {
    namespace_synced_ms_ = now;
    sync = namespace_dirty_.exchange(false) || durability_.pending() || sync;
  }
  if (sync) (void)make_durable(durability_, core_.engine.journal().last(), core_.health);
  core_.states.flushed(core_.epochs.flushed());
  if (now - ticked_ms_ >= kTickMs) {
    ticked_ms_ = now;
    tick_placement();
    release_streams();
  }
}

void Maintenance::tick_placement() {
  const uint64_t refused = core_.placement.model_status().refused;
  const auto said = core_.placement.tick();
  if (!said) return;
  const bool refusal = core_.placement.model_status().refused != refused;
  log_event(refusal ? Event::kModelRefused : Event::kNone,
            refusal ? spdlog::level::warn : spdlog::level::info, "placement: " + *said);
}

void Maintenance::release_streams() {
  for (const PStreamId stream : core_.placement.take_released()) {
    if (const auto done = core_.device.release(stream); !done.ok()) {
      spdlog::warn("pStream {} was not released: {}", stream.value, done.error().message());
    }
  }
}

uint32_t Maintenance::reclaim_interval_ms() const {
  return trims_.pressed() ? kReclaimPressedMs : kReclaimMs;
}

// Waits for the next pass. The interval is looked up again at each step, because room may run short
// meanwhile: right after a pass it never is short.
bool Maintenance::wait_to_reclaim() {
  for (uint32_t ms = 0; ms < reclaim_interval_ms(); ms += kReclaimPressedMs) {
    if (!wait(kReclaimPressedMs)) return false;
    meta_round();
  }
  return true;
}

void Maintenance::reclaim_loop() {
  (void)core_.epochs.begin_writing();  // writers would wait for it
  while (wait_to_reclaim()) reclaim_round();
}

void Maintenance::close_epoch() {
  (void)core_.epochs.close();  // logs its errors; such inodes stay dirty
  if (!durability_.waits() || !core_.health.writable().ok()) return;
  if (core_.epochs.logs())
    namespace_changed();  // no program waits for the records: the next round ships them
  else
    (void)make_durable(durability_, core_.engine.journal().last(), core_.health);
}

void Maintenance::look_at_device() {
  const uint64_t now = clock_.monotonic_ms();
  if (now - looked_ms_ < kLookMs) return;
  looked_ms_ = now;
  core_.look_at_device();
}

void Maintenance::meta_round() {
  if (core_.health.writable().ok()) core_.keep_meta_room();
}

void Maintenance::reclaim_round() {
  if (!core_.health.writable().ok()) return;
  (void)free_orphans();
  if (trims_.pressed() && core_.epochs.dirty_for(kClosePressedMs)) close_epoch();
  const Result<void> done = trims_.drain(TrimQueue::Pace::kGivesWay);
  if (!done.ok()) spdlog::error("freed blocks: {}", done.error().message());
  count_inodes();
  follow_round();
}

// Does not run on the timer's thread, because it may take long.
void Maintenance::follow_round() {
  const uint64_t now = clock_.monotonic_ms();
  if (now - followed_ms_ < kFollowMs || !core_.health.writable().ok()) return;
  followed_ms_ = now;
  (void)durable_or_read_only(durability_.follow(), core_.health);
}

// After a crash the number of inodes in use is not known.
void Maintenance::count_inodes() {
  for (int step = 0; step < kCountSteps && core_.engine.count_inodes(); ++step) {
  }
}

void Maintenance::add_orphan(InodeId id) {
  const MutexLock lock(mutex_);
  orphans_.push_back(id);
}

std::optional<InodeId> Maintenance::next_orphan() {
  const MutexLock lock(mutex_);
  if (orphans_.empty()) return std::nullopt;
  const InodeId id = orphans_.front();
  orphans_.pop_front();
  return id;
}

Result<void> Maintenance::free_orphans() {
  return orphan_runs_.run([this] { return free_all_orphans(); });
}

Result<void> Maintenance::free_all_orphans() {
  if (!leftovers_found_.exchange(true)) {
    for (const InodeId id : core_.engine.leftover_orphans()) add_orphan(id);
  }
  Result<void> first;
  while (const auto id = next_orphan()) {
    const Result<void> done = core_.engine.free_orphan(*id);
    core_.states.release(*id, core_.epochs.epoch());
    if (done.ok()) continue;
    spdlog::error("inode {}: not freed: {}", id->value, done.error().message());
    if (first.ok()) first = done;
  }
  return first;
}

Result<void> Maintenance::reclaim(TrimQueue::Pace pace) {
  const TrimQueue::Haste haste(trims_, pace);
  const Result<void> done = reclaims_.run([this, pace]() -> Result<void> {
    SFS_TRY(core_.health.writable());
    (void)free_orphans();
    close_epoch();
    return trims_.drain(pace);
  });
  // The run may have been shared with a caller that does not wait for all trims.
  return done.ok() && pace == TrimQueue::Pace::kNow ? trims_.drain(pace) : done;
}

}  // namespace streamfs::data
