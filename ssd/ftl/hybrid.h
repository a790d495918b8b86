// The hybrid FTL of PRAM and NAND (Lee, Samsung, "hFTL"): a page map and the states of all blocks
// in persistent memory, changed word by word. Nothing is scanned at start, and RAM holds only the
// two frontiers. A page write costs two words, or one if the logical page was not mapped.
//
// Order of stores, where | is a fence:
//   write       page and spare area on NAND, the map's word | dead bit of the replaced page
//   trim        the map's word | dead bit |
//   collection  a write for each live page, then | erase the block, put it into the pool |
//   open block  clear its bits | make it a frontier | take it out of the pool |
// The dead bit of a write is durable after the next fence, of whatever operation.
//
// Invariants: a live page is where the map says, and its spare area names it. In a block that is
// not free, a page's bit is set exactly if the page is programmed and not live. The bits of a free
// block mean nothing. A cut may lose the last dead bit of a write or trim. After a write, the spare
// area names the replaced page, and open() sets the bit again. After a trim, the bit stays unset. A
// collection therefore trusts the map, not the bits. If a spare area is damaged, it searches the
// map for the page. After a crash: a write or trim that returned is kept; of one in progress, each
// page is kept or not. open() reads a fixed number of lines and, by bisection, the spare areas of
// the two frontiers, however large the device is.
//
// Thread safety: the owner locks; only location() may run beside itself. Errors are errno values, 0
// for none, those of Nand; EIO also for persistent memory that no cut explains. Counts pages of the
// flash.
#pragma once

#include <array>
#include <atomic>
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
  // Makes an empty device. Requires: the flash is erased.
  // Errors: EINVAL if the blocks do not suffice for the user data with the open and free blocks, if
  // low_water is 0 or not smaller than the pool, or if the region is too small.
  static Result<void> format(const Geometry& geometry, pmem::Region& region);
  // `region`, `nand` and `counters` outlive the FTL. Errors: EINVAL for a region of another FTL or
  // device or those of format(), EIO for a damaged region, those of Nand.
  static Result<std::unique_ptr<HybridFtl>> open(const Geometry& geometry, pmem::Region& region,
                                                 Nand& nand, Counters& counters);

  ~HybridFtl() { flushed_.leave(); }  // like a cut
  HybridFtl(const HybridFtl&) = delete;
  HybridFtl& operator=(const HybridFtl&) = delete;

  // `frontier` and `vstream` have no effect: all host writes share one open block. Errors: ENOSPC
  // when no block can be freed.
  int write(Lpn first, uint32_t count, FrontierId frontier, uint16_t vstream,
            const std::byte* data);
  void trim(Lpn page);
  int flush();
  Ppn location(Lpn page) const;
  bool live(Lpn page) const { return location(page) != kNoPage; }

  // A step of background work: moves up to `most` pages of the victim, and erases it once none is
  // left. Returns false if nothing was done: the victim has more than `valid_limit` valid pages or
  // none dead, the pool is full, or an error.
  bool collect_some(uint32_t valid_limit, uint32_t most);
  uint32_t free_blocks() const;
  // Returns the number of mapped pages. Goes through the whole map and counts no word as read: it
  // serves statistics that the device itself does not have.
  uint64_t live_pages() const;
  // Returns the words of the region that this object read. While location() runs beside itself,
  // some go uncounted.
  uint64_t words_read() const { return words_read_.load(std::memory_order_relaxed); }
  // Returns the bytes of RAM that it keeps between two calls.
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
  int collect(BlockIndex victim, uint64_t most);
  int move(Ppn from);
  int retire(BlockIndex victim);
  BlockIndex choose_victim() const;
  uint32_t dead_pages(BlockIndex block) const;
  void point(Lpn page, Ppn at);
  void bury(Ppn page);
  Lpn owner_of(Ppn at) const;
  bool in_use(BlockIndex block) const;
  bool in_pool(BlockIndex block) const;
  uint32_t pooled() const;
  uint64_t load(uint64_t offset) const;
  void store(uint64_t offset, uint64_t value);  // durable after fence()
  void fence();
  Ppn next_page(const Frontier& frontier) const {
    return frontier.block * geometry_.pages_per_block + frontier.written;
  }
  bool full(const Frontier& frontier) const {
    return frontier.block == kNoBlock || frontier.written == geometry_.pages_per_block;
  }

  const Geometry geometry_;
  const HybridLayout layout_;
  pmem::Region& region_;
  pmem::Flushed flushed_;
  Nand& nand_;
  Counters& counters_;
  std::array<Frontier, kHybridFrontiers> open_;
  mutable std::atomic<uint64_t> words_read_ = 0;
};

}  // namespace streamfs::ssd
