// Does the background work of a mount in two threads. The timer keeps deadlines of about a second:
// it closes epochs, makes changes of names and attributes durable, remaps vStreams and looks
// whether DATA is still this filesystem's. The reclaimer may take long: it frees orphans, trims
// blocks and grows META.
//
// Both threads log their errors and go on. In a read-only filesystem they only look at DATA.
//
// Thread safety: any thread may call any method, except that one thread at a time calls start() and
// stop(). After a crash: nothing of its own is left. The next mount finds leftover orphans and
// untrimmed blocks again.
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

  // Call it after a commit of names or attributes: the timer makes the record durable within about
  // a second.
  void namespace_changed() { namespace_dirty_.store(true, std::memory_order_relaxed); }
  void add_orphan(InodeId id);
  // Frees orphans, commits dirty inodes, and trims freed blocks at this pace, so that blocks become
  // allocatable. Concurrent calls share a run. Errors: EROFS; those of TrimQueue::drain(). Errors
  // of orphans and commits are logged only.
  Result<void> reclaim(TrimQueue::Pace pace = TrimQueue::Pace::kNow);
  // Frees orphans and their units of META without device I/O. The first call frees the orphans that
  // the last mount left, too. Concurrent calls share a run. Returns the first error, after trying
  // all orphans; an orphan that could not be freed stays for the next mount.
  Result<void> free_orphans();

  // The next five are for tests, which have no threads: a round of each kind of work, and the pause
  // between two rounds of the reclaimer.
  void timer_round();
  void meta_round();  // the reclaimer's, ten times a second
  void reclaim_round();
  void follow_round();
  uint32_t reclaim_interval_ms() const;

 private:
  static constexpr uint32_t kTimerMs = 100, kTickMs = 1000, kFollowMs = 30'000, kLookMs = 10'000;
  // Blocks that are dead but not trimmed use up the SSD's spare. Each round of the reclaimer costs
  // a flush or two, so rounds come more often only if little is free. Epochs are then closed
  // sooner, too, because the blocks that new data replaces are dead only after its commit.
  static constexpr uint32_t kReclaimMs = 500, kReclaimPressedMs = 100, kClosePressedMs = 500;
  static constexpr int kCountSteps = 256;  // of Engine::count_inodes(), in a round
  // Closes the epoch and makes its commits durable; with an intent log the timer does the latter
  // later. Logs errors; such inodes stay dirty.
  void close_epoch();
  void tick_placement();
  void look_at_device();
  void release_streams();
  void timer_loop();
  void reclaim_loop();
  bool wait(uint32_t milliseconds);  // returns false once stop() was called
  bool wait_to_reclaim();            // the same, until the reclaimer's next round is due
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
