// The log-block FTL: a block map, in which a page lies at its own place in its block, and a few log
// blocks, each of which takes the newer pages of one logical block in the order of their writes
// (Kim et al., "A space-efficient flash translation layer for CompactFlash systems", 2002). The
// next page of a data block without a log block is written to the data block, every other page to
// the log block. A log block ends in one of three merges, or without one once its logical block has
// no live page:
//
//   in order, all of it       switch   the log block becomes the data block          0 copies
//   in order, up to a point   partial  the rest is copied to it, then as above       the rest
//   anything else             full     a free block gets the newest of every page    a block
//
// The tables are in RAM. recover() rebuilds them from the spare area: a few reads a block (by
// bisection), and all pages of a log block. A trim survives if the owner stores its sequence and
// passes it to recover(); else a trimmed page may read as before the trim.
//
// Invariants: a logical block has at most one data and one log block, and a page in its log block
// is newer than the same page in its data block; one block is free for the next full merge.
// After a crash: recover() finds every page whose write returned; a page in mid-write has its new
// or its old content. A merge erases a block only after its replacement is whole.
//
// Thread safety: none; the owner locks. Errors are errno values, 0 for none, those of Nand. The
// counters count flash pages, not pages of 4 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "ssd/counters.h"
#include "ssd/ftl/bitmap.h"
#include "ssd/ftl/nand.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

class LogBlockFtl {
 public:
  struct Merges {
    uint64_t switched = 0, partial = 0, full = 0;
  };

  // log_blocks 0: as many as the spare holds. `nand` and `counters` outlive the FTL.
  // Errors: EINVAL for a spare that cannot hold the log blocks and the block for merges, or for too
  // large blocks.
  static Result<std::unique_ptr<LogBlockFtl>> make(const Geometry& geometry, uint32_t log_blocks,
                                                   Nand& nand, Counters& counters);
  // Power-up of a device with data. Requires: nothing else was called since make().
  // `trims` has the sequence of the last trim by logical page, 0 for none: a page without a newer
  // version is not live. With `read_only` changes no flash, and nothing may be written afterwards.
  // Errors: EIO for spare areas that no cut explains, those of Nand.
  int recover(std::span<const uint64_t> trims = {}, bool read_only = false);
  uint64_t take_sequence() { return sequence_++; }  // for a trim: no page is programmed with it

  // Ignores `frontier` and `vstream`. After an error a prefix of the pages is written.
  int write(Lpn first, uint32_t count, FrontierId frontier, uint16_t vstream,
            const std::byte* data);
  void trim(Lpn page);
  int flush() { return 0; }  // a write is durable when it returns
  Ppn location(Lpn page) const;
  bool live(Lpn page) const { return live_bits_.test(page); }

  uint32_t log_blocks() const { return static_cast<uint32_t>(logs_.size()); }
  const Merges& merges() const { return merges_; }
  size_t free_blocks() const { return free_.size(); }
  uint64_t live_pages() const;
  // Returns the bytes of the tables as a controller would pack them.
  uint64_t ram_bytes() const;

 private:
  using Slot = uint32_t;
  static constexpr Slot kNoSlot = UINT32_MAX;
  static constexpr uint16_t kNowhere = UINT16_MAX;

  struct Data {  // of a logical block
    BlockIndex block = kNoBlock;
    uint32_t written = 0;
    Slot log = kNoSlot;
  };
  struct Log {
    BlockIndex block = kNoBlock;
    uint32_t owner = 0;  // logical block
    uint32_t written = 0;
    bool in_place = true;  // each page so far lies at its own place
    uint64_t last_use = 0;
    // By page of the logical block: its newest place in this log block, or kNowhere.
    std::vector<uint16_t> place = {};
  };
  struct Found;  // at power-up (log_block_recovery.cc)

  LogBlockFtl(const Geometry& geometry, uint32_t log_blocks, Nand& nand, Counters& counters);

  Ppn page_of(BlockIndex block, uint32_t place) const {
    return block * geometry_.pages_per_block + place;
  }
  int write_page(Lpn page, const std::byte* data);
  int append_to_data(Lpn page, const std::byte* data);
  int append_to_log(Lpn page, const std::byte* data);
  int room_in_log(uint32_t logical);
  int open_log(uint32_t logical);
  Slot oldest_log() const;
  int merge(Slot slot);
  int merge_in_place(Slot slot);
  int rewrite(uint32_t logical);
  int carry_over(uint32_t logical, BlockIndex to, uint32_t from, uint32_t end);
  int become_data(uint32_t logical, BlockIndex block, uint32_t written);
  Ppn newest(uint32_t logical, uint32_t place) const;
  uint32_t end_of(uint32_t logical) const;
  void unmap(Lpn page);
  void drop_if_empty(uint32_t logical);
  void close_log(uint32_t logical);
  int release(BlockIndex block);
  BlockIndex take_free();

  int find(BlockIndex block, std::vector<Found>& all);
  int find_end(Found& found);
  int settle(std::vector<Found>& of_one, std::vector<uint32_t>& torn);
  void apply_trims(std::span<const uint64_t> trims);
  int settle_two(std::vector<Found>& of_one);
  int adopt(const Found& found);
  int adopt_log(const Found& found);

  const Geometry geometry_;
  Nand& nand_;
  Counters& counters_;
  std::vector<Data> data_;  // by logical block
  std::vector<Log> logs_;
  std::deque<BlockIndex> free_;
  Bitmap live_bits_;  // by logical page
  Merges merges_;
  uint64_t sequence_ = 1;
  bool read_only_ = false;  // from recover() on
};

}  // namespace streamfs::ssd
