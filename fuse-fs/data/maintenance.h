// What happens by itself: epochs that close, namespace changes that become durable, orphans that
// are freed, blocks that are trimmed, vStreams that are remapped.
//
// Two threads: the timer's work is short and keeps promises of seconds; the reclaimer's (orphans,
// trims) may take long.
// Thread safety: any thread; stop() once. What a crash leaves: nothing of its own; leftover orphans
// and untrimmed blocks are found again at the next mount.
#pragma once

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/core.h"
#include "fuse-fs/data/durability.h"
#include "fuse-fs/data/group_run.h"
#include "fuse-fs/data/trim_queue.h"

namespace streamfs::data {

class Maintenance {
 public:
  Maintenance(Core& core, Durability& durability, TrimQueue& trims, Clock& clock);
  ~Maintenance() { stop(); }

  void start();
  void stop();  // the threads have ended when it returns; queued work stays queued

  void namespace_changed() { namespace_dirty_.store(true, std::memory_order_relaxed); }
  void add_orphan(InodeId id);
  // What frees blocks: dirty inodes, orphans, trims at this pace. Shared by those who wait.
  Result<void> reclaim(TrimQueue::Pace pace = TrimQueue::Pace::kNow);
  // Orphans alone, with the units of META that they hold: no I/O of the device. The first time
  // those of the run before, too. Shared by those who wait.
  Result<void> free_orphans();

  // For tests, which have no threads: one round of each, and how long the reclaimer would rest.
  void timer_round();
  void meta_round();  // the reclaimer's, each tenth of a second
  void reclaim_round();
  void follow_round();
  uint32_t reclaim_interval_ms() const;

 private:
  static constexpr uint32_t kTimerMs = 100, kNamespaceMs = 900, kTickMs = 1000, kFollowMs = 30'000,
                            kLookMs = 10'000;
  // Dead blocks that are not trimmed yet are live to the SSD. Where little is free they would eat
  // its spare, so there they are reclaimed sooner: each pass costs a flush or two.
  // What a file's new data replace is dead only when they are committed.
  static constexpr uint32_t kReclaimMs = 500, kReclaimPressedMs = 100, kClosePressedMs = 500;
  static constexpr int kCountSteps = 256;  // a round, where inodes in use are not known
  // What an epoch has committed is durable with it.
  void close_epoch();
  void tick_placement();
  void look_at_device();
  void release_streams();
  void timer_loop();
  void reclaim_loop();
  bool wait(uint32_t milliseconds);  // false when stopping
  bool wait_to_reclaim();            // the same
  Result<void> free_all_orphans();
  std::optional<InodeId> next_orphan();
  void count_inodes();

  Core& core_;
  Durability& durability_;
  TrimQueue& trims_;
  Clock& clock_;
  std::atomic<bool> namespace_dirty_{false}, leftovers_found_{false};
  uint64_t namespace_synced_ms_ = 0, ticked_ms_ = 0, looked_ms_ = 0;  // the timer's own
  uint64_t followed_ms_ = 0;                                          // the reclaimer's
  GroupRun reclaims_, orphan_runs_;
  Mutex mutex_;  // leaf
  CondVar stopping_changed_;
  bool stopping_ SFS_GUARDED_BY(mutex_) = false;
  std::deque<InodeId> orphans_ SFS_GUARDED_BY(mutex_);
  std::thread timer_, reclaimer_;
};

}  // namespace streamfs::data
