// The page-mapped FTL: mapping, open blocks, garbage collection; one copy of it for the SSD with
// data and for replay without.
//
// Invariants: a page is programmed in order and once per erase; a logical page is live on at most
// one physical page; a block is erased only when nothing in it is live and every newer version that
// made it dead is committed (on a device without power-loss protection: has left the buffer).
// Media keeps what must survive and is told in this order: store or move (data), stamp_* (spare
// area), committed (from here on the pages count). It may fail in store (without data: padding),
// move and erased. After kProgramFailed nothing of that call is on the flash: the block is told
// failed(), what lives in it moves elsewhere, and then it is retired().
// Victim answers "which block is collected", Router "which open block takes a copy".
//
// Thread safety: none; the owner locks. Errors are errno values, 0 for none: this is the hot path.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/huge_pages.h"
#include "ssd/counters.h"
#include "ssd/ftl/bitmap.h"
#include "ssd/ftl/router.h"
#include "ssd/ftl/write_stamp.h"
#include "ssd/geometry.h"
#include "ssd/victim/view.h"

namespace streamfs::ssd {

// What Media answers when NAND could not program a block.
inline constexpr int kProgramFailed = -1;

// What is known of a block at power-up.
struct RecoveredBlock {
  uint32_t written = 0;  // pages that cannot be programmed before the next erase
  FrontierId frontier = 0;
  uint32_t erases = 0;
  bool failed = false;   // to be emptied and retired
  bool retired = false;  // a bad block
};

template <typename Media, typename Victim, typename Router>
class PageMap {
 public:
  // `geometry` is in map units: so are all pages here, and `data` holds whole ones. It may promise
  // the host more than the flash holds: then writes end in ENOSPC.
  PageMap(const Geometry& geometry, Media& media, Victim& victim, Router& router,
          Counters& counters, LiveCounts& live);

  // Takes over a device with data: `location` by logical page (kNoPage: not mapped).
  void restore(std::span<const RecoveredBlock> blocks, std::span<const Ppn> location,
               uint64_t next_sequence);
  // Becomes what `other` is now, and so do its victim policy, router and live counts. Both have one
  // geometry. What Media holds and what was counted stay the owner's to copy.
  void go_on_from(const PageMap& other);

  // Errors: ENOSPC when no block can be freed or too many are bad, or what Media said. Pages before
  // the failing one are written.
  int write(Lpn first, uint32_t count, FrontierId frontier, uint16_t vstream,
            const std::byte* data);
  void trim(Lpn page);
  // Nothing more comes for this frontier: its open block is closed as it is, so that it can be
  // collected. What comes after all opens another, so it stays open where free blocks are few; and
  // without power-loss protection, where padding may cost more than is given back.
  void seal(FrontierId frontier);
  // Pads and commits what the buffers hold; nothing to do with power-loss protection. An error
  // means that what the buffers hold is still there and not yet safe.
  int flush();

  // Background work, a step at a time: up to `most` pages of one block move, and the block is
  // erased when none is left. False: nothing to do, no room for it, or an error. Collects the next
  // victim if it holds at most `valid_limit` valid pages.
  bool collect_some(uint32_t valid_limit, uint32_t most);
  // Moves data off the least erased closed block if `spread` erases lie between it and the most
  // erased one: data that stays there keeps it from wearing.
  bool level_wear(uint32_t spread, uint32_t most);
  struct Wear {
    uint32_t least = 0, most = 0;  // erases of good blocks
  };
  Wear wear() const;
  size_t free_blocks() const { return free_.size(); }
  // Garbage is collected as if there were so many free blocks fewer: the device does what a smaller
  // one would.
  void withhold(uint32_t blocks) { withheld_ = blocks; }
  // Share of valid pages in what the host's own writes collected lately, or in the best block that
  // there is now, if that has fewer; 0 before the first. What idle time collects dearer costs more
  // than it saves.
  double host_victim_share();

  Ppn location(Lpn page) const { return location_[page]; }
  // Memory is what a large replay waits for: say early which page comes soon.
  void prefetch(Lpn page) const { __builtin_prefetch(&location_[page], 1); }
  // And a little later, once that has arrived, the block that holds it.
  void prefetch_block(Lpn page) const {
    const Ppn at = location_[page];
    if (at == kNoPage) return;
    valid_.prefetch(at);
    __builtin_prefetch(&blocks_[at / geometry_.pages_per_block], 1);
  }
  bool live(Lpn page) const { return location_[page] != kNoPage; }
  uint64_t take_sequence() { return sequence_++; }
  uint64_t clock() const { return clock_; }

 private:
  enum class State : uint8_t { kFree, kOpen, kClosed, kCollecting, kFailed, kBad };
  struct alignas(64) Block {
    uint32_t valid = 0;
    uint32_t written = 0;
    uint32_t committed = 0;
    FrontierId frontier = 0;
    State state = State::kFree;
    uint32_t erases = 0;
    uint64_t opened_at = 0;
    uint64_t uncommitted_since = UINT64_MAX;  // sequence of the first page in the buffer
    // What made pages of this block dead, to be committed before it is erased: pages up to this
    // sequence on these frontiers (bit: frontier % 64). Only without power-loss protection.
    uint64_t superseded_sequence = 0;
    uint64_t superseded_by = 0;

    void supersede(FrontierId by, uint64_t sequence_of_page) {
      superseded_sequence = sequence_of_page;
      superseded_by |= uint64_t{1} << (by % 64);
    }
  };

  bool has_room(FrontierId frontier) const { return open_[frontier] != kNoBlock; }
  Ppn next_page(BlockIndex block) const {
    return block * geometry_.pages_per_block + blocks_[block].written;
  }
  void close(BlockIndex block);
  void fail(BlockIndex block);
  int empty_failed();
  int commit_all();
  bool worn_out() const;
  BlockIndex take_free();
  void open(FrontierId frontier, BlockIndex block);
  int make_room(FrontierId frontier);
  FrontierId room_for_copy(FrontierId wanted);
  int collect_to_low_water();
  int collect();
  int collect(BlockIndex victim, uint32_t most);
  int move_survivors(BlockIndex victim, uint32_t most);
  bool any_to_gain() const;
  void gather_valid(BlockIndex block);
  int copy_run(BlockIndex victim, std::span<const Ppn> from, FrontierId frontier);
  void place(Ppn at, Lpn page);
  Block& invalidate(Ppn page);
  void advanced(BlockIndex block, uint32_t pages, uint64_t first_sequence);
  int pad(BlockIndex block);
  bool holds_back(size_t frontier, const Block& dead) const;
  bool erasable(const Block& dead) const;
  void commit_for(const Block& dead);
  void retire(BlockIndex block);
  void erase_ready();
  void erase(BlockIndex block);

  const Geometry geometry_;
  const uint32_t wordline_;  // pages committed together; 1 with power-loss protection
  const uint32_t unit_;      // 4 KiB pages of one page here: counters are in the former
  Media& media_;
  Victim& victim_;
  Router& router_;
  Counters& counters_;
  LiveCounts& live_;
  HugeVector<Ppn> location_;  // by logical page
  HugeVector<Lpn> resident_;  // by physical page; kNoPage for padding
  Bitmap valid_;              // by physical page
  std::vector<Block> blocks_;
  std::vector<BlockIndex> open_;  // by frontier
  std::deque<BlockIndex> free_;
  std::deque<BlockIndex> pending_;  // dead, to be erased once erasable()
  std::deque<BlockIndex> failed_;   // programmed no more, not yet emptied
  double host_victim_share_ = 0;    // recent mean
  bool levelling_ = false;          // the next block opened is the most worn one
  std::vector<Ppn> survivors_;      // of the block being collected
  uint64_t sequence_ = 1;
  uint64_t clock_ = 0;
  uint32_t withheld_ = 0;
};

}  // namespace streamfs::ssd

#include "ssd/ftl/page_map_background.h"
#include "ssd/ftl/page_map_failure.h"
#include "ssd/ftl/page_map_gc.h"
#include "ssd/ftl/page_map_write.h"
