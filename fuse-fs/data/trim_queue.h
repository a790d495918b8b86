// Freed blocks on their way back: checkpoint, make the frees durable, trim, journal, reusable.
//
// Dead blocks that are not trimmed yet are live to the SSD, so trims do not wait for idle time; but
// while programs are at work they take a tenth of the time at most, unless little is free or
// somebody waits for them.
// Trims may take long, on a slow device or a busy one. Who waits for room waits for a few of them,
// and a moment only; as many blocks as it needs are given out without then: they are overwritten
// soon, which says the same. Who unmounts waits for two seconds; the rest is for the next mount.
// A device frees whole units only. What a freed run leaves of a unit at its ends is trimmed again
// as a whole unit, once what lies beside it in that unit is free, too. Blocks that were written and
// given up before any record named them wait for nothing but their trim.
// Order: no block is trimmed before the record that freed it is home and survives a power cut, and
// none is allocatable before its trim has ended, or was left out, and that is journalled
// (meta/block_allocator.h).
// Thread safety: any thread; pass() may wait. What a crash leaves: blocks whose trim was not
// journalled are trimmed again.
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

  enum class Pace : uint8_t { kNow, kForRoom, kLeaves, kGivesWay };
  // While one lives that does not give way, nobody's pass rests.
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

  // Trims everything that was freed before the call (kForRoom: some of it; kLeaves: what there is
  // time for), shared by those who wait. A failed trim is logged and counted as done: the data is
  // dead all the same.
  Result<void> drain(Pace pace = Pace::kNow);
  // All free blocks, from one on, until `stop` says so.
  Result<FreeTrim> trim_free(BlockNo from, const std::function<bool()>& stop);
  bool pressed() const;  // little is free
  uint64_t pending_blocks() const { return engine_.blocks().pending_blocks(); }

 private:
  static constexpr uint64_t kTrimBlocksMax = 16384;           // 64 MiB a command
  static constexpr size_t kBatchRuns = 256, kHastyRuns = 32;  // a record
  static constexpr uint64_t kPressedShare = 8;  // pressed: less than one block in 8 is free
  Result<void> pass();
  bool cut_short() const;  // somebody needs what it has done more than the rest
  uint64_t blocks_a_trim() const;
  bool trim_unnamed();  // false: cut short
  bool next_batch(std::vector<meta::BlockRun>& batch);
  void trim(const meta::BlockRun& run);
  bool waited_for_room() const;  // somebody did, and long enough
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
  std::atomic<bool> discard_;
  const Activity& activity_;
  std::atomic<int> hurried_{0}, short_of_room_{0};
  std::atomic<int64_t> short_since_{0}, leaving_since_{0};  // steady clock, ns
  std::atomic<uint64_t> untrimmed_blocks_{0};               // of this pass: given out as they were
  std::atomic<uint64_t> seen_traffic_{0};
  std::atomic<bool> last_was_cut_{false};
  GroupRun passes_;
};

}  // namespace streamfs::data
