// Keeps the state of each block of the data device. A block is in one state at a time: free,
// reserved by a write in progress, allocated, freed but not yet reusable, or being trimmed.
//
//   free ──reserve──► reserved ──commit (journal run kAllocate)──► allocated
//    ▲ ▲                 ├──cancel──► free                             │ commit (run kFree)
//    │ │                 └──discard─► trimming, without a record ──► free
//    │ └── trimmed (run kTrimmed) ── trimming ◄── next_trim ── freed ◄─┘
//    └──────────── not worth a trim (no trim on this device) ◄──┘
//
// A freed run may be trimmed once the watermark has passed the record that freed it and, if there
// is a metadata log, that record is durable in the log. The caller says so with release_up_to().
//
// Each pStream fills aligned regions of its own (kRegionBlocks). Ranges the size of an erase unit
// therefore die together even on an SSD without streams.
//
// Construction reads nothing. A group of blocks is read from META at its first use and before any
// of its blocks changes, so the bitmaps are read as the mount found them. A pStream that needs a
// new region opens some further groups in search of a wholly free region. If it finds none, it
// takes the emptiest region that is known.
//
// Thread safety: any thread may call any method; one leaf mutex guards all state.
// After a crash: nothing is left; the block and untrimmed bitmaps of META say which blocks are
// free.
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

  // Reserves up to `wanted` blocks in one run. The run begins at `near` if that block is free and
  // in no other pStream's region (an append stays contiguous), else in the pStream's own region.
  // Errors: ENOSPC, no block is free.
  Result<BlockRun> reserve(uint64_t wanted, PStreamId stream, std::optional<BlockNo> near);
  // Reserves exactly `count` blocks in one run, anywhere. nullopt: no free run is that long.
  std::optional<BlockRun> reserve_whole(uint64_t count);
  // Reserves the first free run at or after `from`: at most `most` blocks, within one group and
  // outside the regions that a pStream is filling. nullopt: there is none.
  std::optional<BlockRun> reserve_free(BlockNo from, uint64_t most);
  // Reserves exactly this run. Returns false if a block of it is not free or lies in a region that
  // a pStream is filling.
  bool reserve_exactly(BlockRun run);
  void cancel(BlockRun run);  // frees a reserved run that was not used
  // Gives a reserved run to next_discard(): it was written, and no record will name it. The device
  // counts its pages as live until the trim.
  void discard(BlockRun run);
  // Passes a run of a committed unwritten extent to the on_discarded() callback, because no thread
  // will read its bytes. The extent keeps the blocks.
  void discard_content(BlockRun run);
  // Returns the next discarded run to trim, as next_trim() does. The caller ends with trimmed().
  std::optional<BlockRun> next_discard(uint64_t max_blocks);
  // Notes that the record that allocates a reserved run has committed.
  void committed_allocation(BlockRun run);
  // Sets the callback for each run that discard(), discard_content() or committed_free() takes. No
  // thread reads these blocks again. Requires: no other thread uses the allocator yet.
  void on_discarded(std::function<void(BlockRun)> discarded);
  // Reads the groups of a run that a record will free; committed_free() requires this call.
  // Requires: the record is not committed yet.
  void about_to_free(BlockRun run);
  // Notes that record `tx` has freed the run. The run then waits for release_up_to(tx).
  void committed_free(BlockRun run, TxId tx);
  // Lets next_trim() return the runs that records up to `tx` have freed.
  void release_up_to(TxId tx);
  // Returns the next freed run to trim, which crosses no multiple of max_blocks. nullopt: there is
  // none. The run stays unallocatable until trimmed(). If no run waits, reads further groups of
  // META for runs that an earlier mount freed and did not trim.
  std::optional<BlockRun> next_trim(uint64_t max_blocks);
  // Makes a run of next_trim() or next_discard() allocatable. Requires: the record that says
  // kTrimmed has committed, if the run is of next_trim().
  void trimmed(BlockRun run);

  void grow();  // adds the new blocks of the extended geometry, which are free

  // Both numbers are exact. The first call reads the groups that were not needed before it.
  uint64_t free_blocks() const;     // free now
  uint64_t pending_blocks() const;  // freed, discarded or being trimmed, and therefore free soon

 private:
  struct Impl;
  void count_all() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace streamfs::meta
