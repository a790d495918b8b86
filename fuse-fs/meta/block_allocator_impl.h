// The state of a BlockAllocator, for the files that implement it: block_allocator.cc reserves
// blocks for writers; block_trims.cc reserves given places, frees and trims.
// Thread safety: the callers of all methods hold `mutex`, which guards every member below it.
// After a crash: nothing is left; META is only read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse-fs/meta/block_allocator.h"
#include "fuse-fs/meta/freed_runs.h"
#include "pmem/region.h"

namespace streamfs::meta {

// A group is first unknown, then *counted* (how many of its blocks are free, and how many wait for
// a trim), then *open* (which ones). Counting and opening read META's bitmaps. Blocks are taken and
// freed in open groups only. META therefore has a group that is not open as the mount found it, and
// the group can be read at any time.
//
// Each pStream fills regions of its own. A search for a region looks at open groups and opens
// further ones ahead (look_ahead()).
struct BlockAllocator::Impl {
  static constexpr uint64_t kGroupWords = BlockAllocator::kGroupBlocks / 64;
  static constexpr uint64_t kRegionWords = BlockAllocator::kRegionBlocks / 64;
  static constexpr uint64_t kGroupRegions =
      BlockAllocator::kGroupBlocks / BlockAllocator::kRegionBlocks;
  static constexpr uint64_t kClasses = 13;  // bit_width of 0..2048 free blocks
  static constexpr uint32_t kNobody = 0;
  static constexpr uint64_t kGroupsAhead = 64;    // opened at most in a search for a region
  static constexpr uint64_t kGroupsCounted = 64;  // counted by one count_some()

  struct Cursor {
    uint64_t region, next;  // next: block to look at first
  };
  struct Regions {
    std::array<uint64_t, kGroupWords> bits;       // 1 = not free, whatever the reason
    std::array<uint16_t, kGroupRegions> free{};   // blocks
    std::array<uint32_t, kGroupRegions> owner{};  // pStream + 1
  };
  struct Group {
    uint32_t free = 0, untrimmed = 0;  // blocks at the time of counting; not kept up to date
    bool counted = false;
    std::unique_ptr<Regions> regions;  // when opened
  };

  const pmem::Region& region;
  const Geometry& geometry;
  std::function<void(BlockRun)> discarded;  // called for a discarded run; set before the first
  mutable Mutex mutex;                      // leaf; guards everything below
  uint64_t known_blocks;                    // covered by `groups`; grow() follows the geometry
  std::vector<Group> groups;
  std::array<uint64_t, kClasses> class_count{};  // of regions in open groups
  std::unordered_map<uint16_t, Cursor> cursors;
  uint64_t counted = 0;   // all groups below it are counted
  uint64_t opened = 0;    // number of open groups
  uint64_t searched = 0;  // `gone` has all untrimmed runs of the groups below it
  uint64_t free = 0;      // free blocks in counted groups
  uint64_t pending = 0;   // blocks in counted groups that wait for a trim
  FreedRuns gone;         // the runs that wait for a trim

  Impl(const pmem::Region& meta, const Geometry& shape)
      : region(meta),
        geometry(shape),
        known_blocks(shape.data_blocks()),
        groups(div_round_up(known_blocks, kGroupBlocks)) {}

  uint64_t blocks() const { return known_blocks; }
  uint64_t word(RegionKind kind, uint64_t index) const {
    return region.load(geometry.bitmap_word(kind, index));
  }
  // Returns the bits of a word whose blocks can never be allocated.
  uint64_t outside(uint64_t index) const {
    const uint64_t reserved = geometry.reserved_in(index), base = index * 64;
    if (base + 64 <= blocks()) return reserved;
    return base >= blocks() ? ~uint64_t{0} : reserved | ~uint64_t{0} << (blocks() - base);
  }
  template <typename Visit>
  void read(uint64_t number, Visit&& visit) const;
  void count(Group& group, uint64_t number);
  bool count_some();
  Regions& open(uint64_t number);
  void open_up(uint64_t first, uint64_t end);
  Regions& group(uint64_t block) { return open(block / kGroupBlocks); }
  uint16_t& free_in(uint64_t at) { return open(at / kGroupRegions).free[at % kGroupRegions]; }
  uint32_t& owner_of(uint64_t at) { return open(at / kGroupRegions).owner[at % kGroupRegions]; }
  uint64_t regions() const { return div_round_up(blocks(), kRegionBlocks); }
  bool is_free(uint64_t block);
  uint64_t next_free(uint64_t from, uint64_t end);
  uint64_t free_until(uint64_t from, uint64_t end);
  void mark(uint64_t first, uint64_t count, bool used);
  void count_changed(uint64_t at, uint16_t now);
  void leave_region(uint16_t stream);
  bool claim_region(uint16_t stream);
  std::optional<uint64_t> find_region(uint64_t from, uint64_t least, bool unowned) const;
  void look_ahead(uint64_t from);
  bool open_another();
  BlockRun take(uint64_t from, uint64_t wanted, uint16_t stream);
  std::optional<BlockRun> take_near(uint64_t near, uint64_t wanted, uint16_t stream);
  std::optional<BlockRun> take_own(uint64_t wanted, uint16_t stream);
  std::optional<BlockRun> take_any(uint64_t wanted, uint16_t stream);
};

}  // namespace streamfs::meta
