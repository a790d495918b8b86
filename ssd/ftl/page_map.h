// The page-mapped FTL: mapping, open blocks, garbage collection; the same code for the SSD with
// data and for replay without.
//
// Invariants: a page is programmed in order and once per erase. A logical page is live on at most
// one physical page. A block is erased only when none of its pages is live and every newer version
// or copy that made one dead is committed (without power-loss protection: has left the buffer).
//
// Media keeps what must survive a power cut. PageMap calls it in this order: store() or move() for
// data, stamp_*() for the spare area, and committed(), after which the pages count at power-up.
// store() without data programs padding. store(), move() and erased() may fail. After
// kProgramFailed no page of that call is on the flash: PageMap calls failed() for the block, moves
// its live pages elsewhere, and then calls retired().
// Victim chooses the block to collect, Router the open block for a copy.
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

// Returned by Media if NAND could not program a block.
inline constexpr int kProgramFailed = -1;

// The state of a block at power-up.
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
  // `geometry` is in map units, and so are all pages here; `data` holds whole map units. The host
  // may be promised more pages than the flash holds: writes then end in ENOSPC.
  PageMap(const Geometry& geometry, Media& media, Victim& victim, Router& router,
          Counters& counters, LiveCounts& live);

  // Takes over a device with data; `location` is by logical page (kNoPage: not mapped).
  // Requires: nothing was written yet.
  void restore(std::span<const RecoveredBlock> blocks, std::span<const Ppn> location,
               uint64_t next_sequence);
  // Copies the state of `other`, with its victim policy, router and live counts; withhold() and
  // host_victim_share() keep their values. The owner copies Media and Counters.
  // Requires: equal geometries.
  void go_on_from(const PageMap& other);

  // Errors: ENOSPC when no block can be freed or too many are bad, those of Media. A prefix of the
  // pages, perhaps empty, is then written.
  int write(Lpn first, uint32_t count, FrontierId frontier, uint16_t vstream,
            const std::byte* data);
  // Unmaps the page in memory only. The owner gives Media a sequence (take_sequence()) by which the
  // trim survives a power cut.
  void trim(Lpn page);
  // The host expects no write to this frontier: closes its open block as it is, so that it can be
  // collected. Does nothing if free blocks are few, because a later write opens another block, or
  // without power-loss protection, because padding may cost more than it frees.
  void seal(FrontierId frontier);
  // Pads and commits the frontier's open wordline, which frees its write buffer. Pads nothing if
  // the frontier has no buffered page, or with power-loss protection. Errors: those of flush().
  // Requires: the geometry has the frontier.
  int commit(FrontierId frontier);
  // Pads and commits the buffered pages of host writes; does nothing with power-loss protection.
  // Errors: those of Media; ENOSPC, a failed block cannot be emptied. After an error the buffered
  // pages are readable but not durable.
  int flush();

  // A step of background work: moves up to `most` pages of the policy's victim, or of the emptiest
  // block if that victim has more than `valid_limit` valid pages. The block is erased once none is
  // left. If this block has more, too, or no dead page, nothing moves. Returns false if nothing
  // moves, if only the last free block is left, and after an error.
  bool collect_some(uint32_t valid_limit, uint32_t most);
  // A step of wear levelling: moves up to `most` pages off the least erased closed block if the
  // most erased block has more than `spread` erases more. Returns as collect_some().
  bool level_wear(uint32_t spread, uint32_t most);
  struct Wear {
    uint32_t least = 0, most = 0;  // erases of good blocks
  };
  Wear wear() const;
  size_t free_blocks() const { return free_.size(); }
  // Collects garbage as if there were `blocks` fewer free blocks, like a smaller device.
  void withhold(uint32_t blocks) { withheld_ = blocks; }
  // Returns the mean share of valid pages in the victims that host writes recently collected; 0
  // before the first. If the policy's present victim has a smaller share, the mean becomes that
  // share. A victim in idle time with a much larger share costs more than it saves.
  double host_victim_share();

  Ppn location(Lpn page) const { return location_[page]; }
  // Prefetches the page's map entry: a large replay waits mostly for memory.
  void prefetch(Lpn page) const { __builtin_prefetch(&location_[page], 1); }
  // Prefetches the state of the page's block; call it once the map entry has arrived.
  void prefetch_block(Lpn page) const {
    const Ppn at = location_[page];
    if (at == kNoPage) return;
    valid_.prefetch(at);
    __builtin_prefetch(&blocks_[at / geometry_.pages_per_block], 1);
  }
  bool live(Lpn page) const { return location_[page] != kNoPage; }
  uint64_t take_sequence() { return sequence_++; }
  uint64_t clock() const { return clock_; }  // pages that the host wrote

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
    // The pages that must be committed before this block is erased, because they made its pages
    // dead: those up to this sequence on these frontiers (bit: frontier % 64). Without power-loss
    // protection only.
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
  BlockIndex emptiest_closed() const;  // kNoBlock: no block is closed
  int move_survivors(BlockIndex victim, uint32_t most);
  bool any_to_gain() const;
  void gather_valid(BlockIndex block);
  int copy_run(BlockIndex victim, std::span<const Ppn> from, FrontierId frontier);
  void place(Ppn at, Lpn page);
  Block& invalidate(Ppn page);
  void advanced(BlockIndex block, uint32_t pages, uint64_t first_sequence);
  int pad(BlockIndex block);
  int pad_open(FrontierId frontier);
  bool holds_back(size_t frontier, const Block& dead) const;
  bool erasable(const Block& dead) const;
  void commit_for(const Block& dead);
  void retire(BlockIndex block);
  void erase_ready();
  void erase(BlockIndex block);

  const Geometry geometry_;
  const uint32_t wordline_;  // pages committed together; 1 with power-loss protection
  const uint32_t unit_;      // 4 KiB pages in a map unit; counters are in 4 KiB pages
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
  std::deque<BlockIndex> pending_;  // without live pages, to be erased once erasable()
  std::deque<BlockIndex> failed_;   // not programmable, not yet emptied
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
