// Background work: closes epochs, makes namespace changes durable, frees orphans, trims blocks,
// grows META, remaps vStreams.
//
// Two threads: the timer's work is short and keeps deadlines of about a second; the reclaimer's
// (orphans, trims, growth) may take long.
// Thread safety: any thread; start() and stop() from one at a time. After a crash: nothing of its
// own; the next mount finds leftover orphans and untrimmed blocks again.
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
  void stop();  // returns once the threads have ended; queued work stays queued

  void namespace_changed() { namespace_dirty_.store(true, std::memory_order_relaxed); }
  void add_orphan(InodeId id);
  // Frees blocks: frees orphans, commits dirty inodes, trims at this pace. Concurrent calls share a
  // run. Errors: EROFS; those of TrimQueue::drain().
  Result<void> reclaim(TrimQueue::Pace pace = TrimQueue::Pace::kNow);
  // Frees orphans and their units of META, without I/O of the device. The first call frees the
  // orphans that the last mount left, too. Concurrent calls share a run.
  Result<void> free_orphans();

  // For tests, which have no threads: one round of each, and the pause between two rounds of the
  // reclaimer.
  void timer_round();
  void meta_round();  // the reclaimer's, ten times a second
  void reclaim_round();
  void follow_round();
  uint32_t reclaim_interval_ms() const;

 private:
  static constexpr uint32_t kTimerMs = 100, kNamespaceMs = 900, kTickMs = 1000, kFollowMs = 30'000,
                            kLookMs = 10'000;
  // Blocks that are dead but not trimmed use up the SSD's spare. Passes come more often if little
  // is free, and only then, as each costs a flush or two. Epochs are then closed sooner, too: the
  // blocks that new data replaces are dead only after its commit.
  static constexpr uint32_t kReclaimMs = 500, kReclaimPressedMs = 100, kClosePressedMs = 500;
  static constexpr int kCountSteps = 256;  // in a round, after a crash
  // Makes the epoch's commits durable, too.
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
