// Maps the blocks of a file to device blocks. META has the committed extents, in slots. An overlay
// in memory has the changes since: added extents, and removed parts of committed ones. The current
// view is the added extents, and beneath them the committed ones without the removed parts. A
// commit moves a part of the overlay into slots, so it costs as much as has changed.
//
// Each added extent has the epoch (the number of a device flush, data/epoch.h) that makes its data
// durable. The commit of an epoch takes the added extents of this epoch and of earlier ones,
// together with the committed parts that they replace. A removal that nothing replaces goes with
// any commit.
//
// Unwritten extents have blocks and read as zeroes. A write into one adds a written extent *in
// place*: with the same blocks, over the committed unwritten one. Its commit neither allocates nor
// frees blocks. If the added extent is dropped before its commit, the blocks stay those of the
// committed one.
//
// A write into the middle of an unwritten extent splits it into three, which takes two more slots.
// The writer reserves room for them before it writes (SlotRoom), so that the commit cannot fail for
// want of a unit of META.
//
// The first two slots are inside the inode, the others in a chain of kExtents units; they are
// unordered on the media. Slots are written by journal patches only, so a cleared slot may be used
// again at once.
//
// Thread safety: none; the inode's mutex guards it.
// After a crash: META has the committed slots; the overlay is lost.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/block_allocator.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {

// A mapped part of a file.
struct Extent {
  uint64_t first = 0, length = 0;  // file blocks
  uint64_t block = 0;              // device block of `first`
  uint16_t vstream = 0;
  bool unwritten = false;

  uint64_t end() const { return first + length; }
};

// The longest unwritten extent. If META has no room to reserve, the writer writes zeroes to the
// rest of the extent as well: the whole extent becomes written, and nothing is split.
inline constexpr uint64_t kMaxUnwrittenBlocks = 1024;
constexpr uint64_t unwritten_extents(uint64_t blocks) {
  return div_round_up(blocks, kMaxUnwrittenBlocks);
}

// Units of META for extents that will be added. Units that are not used go back to the heap.
struct SlotRoom {
  std::vector<Heap::Claim> units;
};

ExtentSlot encode_extent(const Extent& extent);
// Errors: EIO, the slot is damaged or points outside the file or the data device.
Result<Extent> decode_extent(const ExtentSlot& slot, const Geometry& geometry);
// Returns whether one slot can hold both.
bool joins(const Extent& head, const Extent& tail);
ExtentSlot read_extent_slot(const pmem::Region& region, uint64_t offset);
// Reads the extent in a slot outside the inode. Errors: ENOENT, the slot is free; EIO, as above.
Result<Extent> read_extent(const pmem::Region& region, const Geometry& geometry, uint64_t offset,
                           Look look = Look::kFirst);
ExtentSlot inline_slot(const InodeImage& image, size_t slot);

// Blocks of uncommitted changes. The inode has these counts, because a directory listing asks for a
// file's blocks and for nothing else of its extents.
struct UncommittedBlocks {
  uint64_t added = 0;    // current, not committed
  uint64_t removed = 0;  // committed, not current
};

class ExtentMap {
 public:
  static constexpr uint64_t kLastEpoch = std::numeric_limits<uint64_t>::max();

  // Loads the committed extents. The map is dirty already if a crash cut a truncation or an
  // extension short. Sets `uncommitted` and keeps it up to date; it must outlive the map.
  // Errors: EIO, a slot or a chain is damaged, or two slots overlap.
  static Result<std::unique_ptr<ExtentMap>> load(Heap& heap, InodeId id, const InodeImage& image,
                                                 UncommittedBlocks& uncommitted);

  // ---- The current view
  // Returns the first mapped part at or after `from`, without the blocks before `from`.
  std::optional<Extent> next(uint64_t from) const;
  // Returns the same of the committed extents as they will be after the commit of `epoch`, without
  // what it adds. A part counts as mapped unless it is removed, or replaced up to that epoch.
  std::optional<Extent> next_committed(uint64_t from, uint64_t epoch = kLastEpoch) const;
  // A run of blocks that left the overlay. `committed`: a committed extent has these blocks,
  // because the dropped one was in place. If not, they were reserved, and no extent has them.
  struct Dropped {
    BlockRun run;
    bool committed = false;
  };
  // Maps `extent` over a hole or over mapped blocks. The record that commits it also removes the
  // extents that it replaces; no earlier record does.
  std::vector<Dropped> add(const Extent& extent, uint64_t epoch);
  std::vector<Dropped> remove(uint64_t first, uint64_t count);
  // Turns written blocks into unwritten ones: they read as zeroes, and the file keeps them. Any
  // commit takes the change, because it needs no data on the device.
  void unwrite(uint64_t first, uint64_t end);
  // Takes as many units from `room` as the overlay may need.
  void absorb(SlotRoom& room);
  // Returns whether META has an unwritten extent at or after this file block.
  bool unwritten_from(uint64_t block) const;
  bool dirty() const { return !added_.empty() || !removed_.empty(); }
  uint64_t bytes() const;  // about what it takes in memory
  // Visits the added extents of this epoch and of earlier ones.
  void for_each_added(uint64_t epoch,
                      const std::function<void(const Extent&, uint64_t epoch)>& visit) const;
  bool needs_unit() const { return free_slots_.empty() && inline_used_ == kInlineExtents; }

  // ---- Committing. plan() puts a bounded part of the overlay, up to `epoch`, into a transaction
  // and into `next`. It changes the committed extents in memory at once. No other method may
  // therefore be called before done(), which follows the commit, or restore(), which follows an
  // error of plan() or of the commit and loads the committed extents from META again.
  // Errors: ENOSPC, META has no unit for a slot; EIO, also of restore().
  struct Plan {
    // A step patches at most two cells; a transaction holds fewer than 200.
    static constexpr uint32_t kMaxSteps = 90;
    bool complete = true;  // nothing up to the epoch is left for another record
    std::vector<BlockRun> allocated, freed;
    uint64_t in_place = 0;        // blocks that became written, or unwritten
    uint64_t removed_up_to = 0;   // the plan has all removals below it that nothing replaces
    std::vector<uint64_t> added;  // keys of added_ that the plan has
    std::vector<Heap::Claim> units;
    uint32_t steps = 0;
  };
  Result<Plan> plan(Transaction& tx, InodeImage& next, uint64_t epoch);
  void done(Plan plan);
  Result<void> restore(const InodeImage& image);

  // Returns all runs of the overlay, for a file that dies before its commit.
  std::vector<Dropped> overlay() const;

 private:
  struct Committed {
    Extent extent;
    uint64_t slot;  // 0 or 1: inside the inode; else a META offset
  };
  struct Added {
    Extent extent;
    uint64_t epoch;
    bool in_place;  // the committed extent beneath has the same blocks
  };
  // The epoch of the added extent that replaces a removed part. nullopt: nothing replaces it.
  using Replaced = std::optional<uint64_t>;
  struct Removed {
    uint64_t end;
    Replaced epoch;
  };
  ExtentMap(Heap& heap, InodeId id, UncommittedBlocks& uncommitted)
      : heap_(heap), id_(id), uncommitted_(uncommitted) {
    uncommitted_ = {};
  }

  Result<void> load_slots(const InodeImage& image);
  Result<void> add_committed(const Extent& extent, uint64_t at);
  void add_part(const Added& part);
  std::vector<Dropped> take_out(uint64_t first, uint64_t end, Replaced epoch);
  void hide(uint64_t first, uint64_t end, Replaced epoch);
  void let_wait(uint64_t first, uint64_t end, Replaced epoch);
  std::vector<Dropped> remove_added(uint64_t first, uint64_t end);
  void split_added(uint64_t first, uint64_t at);
  void forget_removed(uint64_t first, uint64_t end);

  Result<void> plan_removals(Transaction& tx, InodeImage& next, Plan& plan);
  uint64_t room_up_to(const Extent& extent, uint32_t steps) const;
  enum class Blocks : uint8_t { kFreed, kKept };
  Result<uint64_t> plan_removals_in(Transaction& tx, InodeImage& next, Plan& plan, uint64_t first,
                                    uint64_t end, Blocks blocks);
  Result<void> plan_removal(Transaction& tx, InodeImage& next, Plan& plan, uint64_t key,
                            uint64_t first, uint64_t end, Blocks blocks = Blocks::kFreed);
  Result<void> plan_added(Transaction& tx, InodeImage& next, Plan& plan, const Added& added);
  bool join(Transaction& tx, InodeImage& next, const Extent& extent);
  Result<Heap::Claim> take_unit();
  Result<uint64_t> take_slot(Transaction& tx, InodeImage& next, Plan& plan);
  void write_slot(Transaction& tx, InodeImage& next, uint64_t slot, const Extent& extent,
                  const Extent* old) const;
  void clear_slot(Transaction& tx, InodeImage& next, uint64_t slot);

  Heap& heap_;
  InodeId id_;
  std::map<uint64_t, Committed> committed_;  // by first file block
  std::map<uint64_t, Added> added_;          // by first file block; never over visible committed
  std::map<uint64_t, Removed> removed_;      // by first file block
  std::vector<uint64_t> free_slots_;         // META offsets
  std::vector<Heap::Claim> ahead_;           // units for slots that the overlay will need
  uint32_t inline_used_ = 0;
  UncommittedBlocks& uncommitted_;
};

}  // namespace streamfs::meta
