// Blocks of the data device: which are free, reserved by a write in progress, allocated, freed but
// not yet reusable, or being trimmed. Never two of these at once.
//
//   free ──reserve──► reserved ──commit (journal run kAllocate)──► allocated
//    ▲ ▲                 ├──cancel──► free                             │ commit (run kFree)
//    │ │                 └──discard─► trimming, without a record ──► free
//    │ └── trimmed (run kTrimmed) ── trimming ◄── next_trim ── freed ◄─┘
//    └──────────── not worth a trim (no trim on this device) ◄──┘
//
// A freed run becomes trimmable only when `reusable` of its record holds (watermark passed, and
// flushed to the metadata log where there is one): the owner says so with release_up_to().
//
// Lifetime-aware: each pStream fills aligned regions of its own (kRegionBlocks), so that ranges
// the size of erase units die together even on an SSD without streams.
//
// Opening reads nothing: a group of blocks is read at its first use, and always before a block of
// it changes, so that what is read is what the mount found. A stream that wants a new region looks
// at some groups more for a wholly free one, and takes the emptiest it knows if there is none.
//
// Thread safety: all methods, any thread; one leaf mutex over all of it. Crash: this is memory
// only, rebuilt from the block and untrimmed bitmaps.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/freed_runs.h"
#include "fuse-fs/meta/geometry.h"
#include "pmem/region.h"

namespace streamfs::meta {

class BlockAllocator {
 public:
  static constexpr uint64_t kRegionBlocks = 2048;  // 8 MiB
  static constexpr uint64_t kGroupBlocks = 32768;  // 128 MiB

  BlockAllocator(const pmem::Region& region, const Geometry& geometry);
  ~BlockAllocator();

  // Up to `wanted` blocks in one run, at `near` if given and free (an append that stays
  // contiguous), else in the pStream's own region. ENOSPC when nothing is free.
  Result<BlockRun> reserve(uint64_t wanted, PStreamId stream, std::optional<BlockNo> near);
  // Exactly so many in one run, wherever they are; none if they are free nowhere.
  std::optional<BlockRun> reserve_whole(uint64_t count);
  // The first free run at or after `from`, at most so long and within one group; not in regions
  // that a pStream is filling. None at the end.
  std::optional<BlockRun> reserve_free(BlockNo from, uint64_t most);
  // Exactly this run, if all of it is free and no pStream is filling its region.
  bool reserve_exactly(BlockRun run);
  void cancel(BlockRun run);  // a reserved run was not used
  // A reserved run was written, and no record will name it: to the device it lives until its trim.
  void discard(BlockRun run);
  // Passes a run of a committed unwritten extent to the on_discarded() callback: no one reads its
  // bytes, but the extent keeps the blocks.
  void discard_content(BlockRun run);
  std::optional<BlockRun> next_discard(uint64_t max_blocks);  // as next_trim; ends with trimmed()
  void committed_allocation(BlockRun run);                    // its record is durable
  // Sets the callback for each run that discard() or discard_content() takes. Nobody reads these
  // blocks again. Requires: no other thread uses the allocator yet.
  void on_discarded(std::function<void(BlockRun)> discarded);
  // A run that a record is going to free: before it commits.
  void about_to_free(BlockRun run);
  // Freed by record `tx`; waits for release_up_to.
  void committed_free(BlockRun run, TxId tx);
  void release_up_to(TxId tx);
  // The next freed run to trim; it is not allocatable until trimmed() says so. Aligned to and at
  // most max_blocks long.
  std::optional<BlockRun> next_trim(uint64_t max_blocks);
  void trimmed(BlockRun run);

  void grow();  // the geometry has been extended: its new blocks are free

  // Exact. The first call reads what nobody has needed yet.
  uint64_t free_blocks() const;     // free now
  uint64_t pending_blocks() const;  // freed, released or trimming: free soon
  bool is_allocated(BlockNo block) const;

 private:
  struct Impl;
  void count_all() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace streamfs::meta
