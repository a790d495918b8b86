// Makes freed blocks reusable: checkpoint, make the frees durable, trim, journal the trims.
//
// Until a dead block is trimmed, the SSD takes it for live and copies it when it collects garbage.
// Trims therefore do not wait for idle time. While programs are active, a rest of nine times its
// duration follows each trim, at most 100 ms, unless little is free or a thread waits for the
// trims.
//
// Trims may take long. A thread that waits for room waits for one small batch of them. After 100 ms
// further blocks are released without a trim: they are overwritten soon, which has the same effect.
// An unmount trims for two seconds; the next mount trims the rest.
//
// A device frees whole units only. If a freed run covers part of a unit, the unit is trimmed once
// all of it is free. Blocks that were written but never named by a record (of a failed write, or of
// a file that was deleted before its commit) are trimmed without the other three steps.
//
// Order: no block is trimmed before the record that freed it is home and survives a power cut. No
// block is allocatable before its trim has ended, or was left out, and that is journalled
// (meta/block_allocator.h).
// Thread safety: any thread; drain() and trim_free() may wait. After a crash: blocks whose trim was
// not journalled are trimmed again.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/data/activity.h"
#include "fuse-fs/data/durability.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/data/group_run.h"
#include "fuse-fs/data/health.h"
#include "fuse-fs/data/trace_recorder.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/placement/placement.h"
#include "pmem/region.h"

namespace streamfs::data {

class TrimQueue {
 public:
  TrimQueue(pmem::Region& region, meta::Engine& engine, blockdev::Device& device,
            placement::Placement& placement, Conditions& conditions, Health& health,
            TraceRecorder& trace, bool discard, const Activity& activity);

  // kNow: trim all. kForRoom: a thread needs blocks. kLeaves: an unmount. kGivesWay: rest while
  // programs are active.
  enum class Pace : uint8_t { kNow, kForRoom, kLeaves, kGivesWay };
  // While a Haste exists whose pace is not kGivesWay, no pass rests.
  class Haste {
   public:
    Haste(TrimQueue& queue, Pace pace);
    ~Haste();
    Haste(const Haste&) = delete;
    Haste& operator=(const Haste&) = delete;

   private:
    TrimQueue& queue_;
    const Pace pace_;
  };

  // Trims the blocks that were freed before the call, in a pass that concurrent calls share. The
  // pass ends early while any caller has kForRoom, after a batch, and once an unmount has trimmed
  // for two seconds. With kNow, further passes then follow, unless an unmount is under way. With
  // another pace, the rest is left to a later call. A failed trim is logged and counts as done,
  // since the data is dead anyway. Errors: the frees are not durable, or the trims not journalled;
  // the filesystem is then read-only.
  Result<void> drain(Pace pace = Pace::kNow);
  // Trims free blocks from `from` on, until `stop`, asked after each trim, returns true. Errors:
  // the device's.
  Result<FreeTrim> trim_free(BlockNo from, const std::function<bool()>& stop);
  bool pressed() const;  // less than one block in kPressedShare is free
  uint64_t pending_blocks() const { return engine_.blocks().pending_blocks(); }

 private:
  static constexpr uint64_t kTrimBlocksMax = 16384;           // 64 MiB a command
  static constexpr size_t kBatchRuns = 256, kHastyRuns = 32;  // in a record
  static constexpr uint64_t kPressedShare = 8;
  Result<void> pass();
  bool cut_short() const;  // a thread waits for room, or an unmount's time is over
  uint64_t blocks_a_trim() const;
  bool trim_unnamed();  // false: cut short
  bool next_batch(std::vector<meta::BlockRun>& batch);
  void trim(const meta::BlockRun& run);
  bool waited_for_room() const;  // a thread has waited for more than 100 ms
  void join_leftovers(std::span<const meta::BlockRun> runs);
  void trim_unit(uint64_t first, uint64_t unit);
  void give_way(uint64_t worked_ns);

  pmem::Region& region_;
  meta::Engine& engine_;
  blockdev::Device& device_;
  placement::Placement& placement_;
  Conditions& conditions_;
  Health& health_;
  TraceRecorder& trace_;
  std::atomic<bool> discard_;  // false: the device gets no trims, or does not support them
  const Activity& activity_;
  std::atomic<int> hurried_{0}, short_of_room_{0};
  std::atomic<int64_t> short_since_{0}, leaving_since_{0};  // steady clock, ns
  std::atomic<uint64_t> untrimmed_blocks_{0};               // of this pass: released without a trim
  std::atomic<uint64_t> seen_traffic_{0};
  std::atomic<bool> last_was_cut_{false};
  GroupRun passes_;
};

}  // namespace streamfs::data
