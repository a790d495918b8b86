// The hybrid FTL of PRAM and NAND (Lee, Samsung, "hFTL"): a page map and the states of all blocks
// in persistent memory, changed word by word, so that nothing is scanned at start and next to
// nothing lies in RAM. A page written costs two words, or one if nothing lay there before.
//
// The order of stores, where | is a fence: the page and its spare area on NAND; the map's word |
// the dead bit of what it replaced, which the next fence takes along. So a bit may be late by one
// page after a cut: the spare area names what was replaced, and open() sets it again. A collection
// believes the map and not the bits. A block that is collected goes: erased, into the pool | ; and
// opened: its bits cleared | made a frontier | out of the pool.
//
// Invariants: a live page is where the map says, and its spare area names it; but for what a cut
// left of the last trim, a page's bit is set exactly if it is programmed and not live.
// Crash: a write or trim that returned is kept; one under way is there page by page or not.
// open() reads three lines and, by halves, the spare areas of two blocks, however large the device.
//
// Thread safety: none; the owner locks. Errors are errno values, 0 for none, those of Nand. Counts
// pages of the flash.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "pmem/region.h"
#include "ssd/counters.h"
#include "ssd/ftl/hybrid_layout.h"
#include "ssd/ftl/nand.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

class HybridFtl {
 public:
  static uint64_t region_bytes(const Geometry& geometry) { return HybridLayout(geometry).bytes(); }
  // Makes an empty device; the flash is erased.
  // Errors: EINVAL for a spare that cannot hold the open and free blocks, or a region too small.
  static Result<void> format(const Geometry& geometry, pmem::Region& region);
  // What it borrows outlives it. Errors: EINVAL for a region of another FTL or of another device,
  // EIO for one that is damaged, those of Nand.
  static Result<std::unique_ptr<HybridFtl>> open(const Geometry& geometry, pmem::Region& region,
                                                 Nand& nand, Counters& counters);

  // Errors: ENOSPC when no block can be freed.
  int write(Lpn first, uint32_t count, FrontierId frontier, uint16_t vstream,
            const std::byte* data);
  void trim(Lpn page);
  int flush();
  Ppn location(Lpn page) const;
  bool live(Lpn page) const { return location(page) != kNoPage; }

  // Background work: collects the next victim, if it holds at most `valid_limit` live pages.
  // False: nothing to do, no room for it, or an error.
  bool collect_one(uint32_t valid_limit);
  uint32_t free_blocks() const;

  uint64_t words_read() const { return words_read_; }  // of the region, by this object
  // What it keeps between two calls.
  static uint64_t ram_bytes() { return sizeof(Frontier) * kHybridFrontiers + 3 * kWordSize; }

 private:
  enum FrontierName : uint8_t { kHost = 0, kCopies = 1 };
  struct Frontier {
    BlockIndex block = kNoBlock;
    uint32_t written = 0;
  };

  HybridFtl(const Geometry& geometry, pmem::Region& region, Nand& nand, Counters& counters);

  int start();
  int find_end(Frontier& frontier);
  int redo_last(const Frontier& frontier);
  int write_page(Lpn page, const std::byte* data);
  int host_room();
  int open_block(FrontierName name);
  int collect(BlockIndex victim);
  int move(Ppn from);
  int retire(BlockIndex victim);
  BlockIndex choose_victim() const;
  uint32_t dead_pages(BlockIndex block) const;
  void point(Lpn page, Ppn at);
  void bury(Ppn page);
  bool in_use(BlockIndex block) const;
  bool in_pool(BlockIndex block) const;
  uint64_t load(uint64_t offset) const;
  void store(uint64_t offset, uint64_t value);
  Ppn next_page(const Frontier& frontier) const {
    return frontier.block * geometry_.pages_per_block + frontier.written;
  }
  bool full(const Frontier& frontier) const {
    return frontier.block == kNoBlock || frontier.written == geometry_.pages_per_block;
  }

  const Geometry geometry_;
  const HybridLayout layout_;
  pmem::Region& region_;
  Nand& nand_;
  Counters& counters_;
  std::array<Frontier, kHybridFrontiers> open_;
  mutable uint64_t words_read_ = 0;
};

}  // namespace streamfs::ssd
