// Remembers when each live block was written, and in which cell, for a sample of the device.
//
// Blocks are followed in groups of 64 KiB. At first all groups are followed. When full() says so,
// the caller calls thin(), which drops half of the groups and doubles N: from then on one group in
// N is followed. A hash of the group's number chooses it, so the followed groups are a fair sample,
// and a caller multiplies its counts by N (spatial sampling: Waldspurger et al., "Efficient MRC
// Construction with SHARDS", FAST'15). With kGroupsMax groups the map takes at most 45 MiB.
// Thread safety: none. Crash: memory only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <unordered_map>

#include "base/mix.h"

namespace streamfs::classifier {

class BirthMap {
 public:
  struct Birth {
    uint32_t clock = 0;      // low half of the clock in pages: enough for 16 TiB of writes
    uint32_t cell_plus = 0;  // cell + 1; 0 = not alive
  };
  static constexpr uint64_t kGroupBlocks = 16;
  // 16 blocks each, in nodes of 160 bytes; the rest is for hash buckets, twice while they grow.
  static constexpr size_t kGroupsMax = 250'000;

  explicit BirthMap(size_t groups_max) : groups_max_(std::max<size_t>(groups_max, 1)) {}

  bool follows(uint64_t block) const {
    return one_in_ == 1 || (mix64(block / kGroupBlocks) & (one_in_ - 1)) == 0;
  }
  // Stores the birth of a block and returns the birth that it had. Requires: follows(block).
  Birth set(uint64_t block, uint64_t clock, uint32_t cell) {
    Group& group = groups_[number_of(block)];
    Birth& birth = group.births[block % kGroupBlocks];
    const Birth before = birth;
    group.alive += before.cell_plus == 0 ? 1U : 0U;
    alive_ += before.cell_plus == 0 ? 1U : 0U;
    birth = {static_cast<uint32_t>(clock), cell + 1};
    return before;
  }

  // Removes the births of all blocks in the range, and calls visit(Birth) for each.
  template <typename Visit>
  void take(uint64_t block, uint64_t pages, const Visit& visit) {
    const uint64_t end = block + pages;
    if (pages / kGroupBlocks > groups_.size()) {  // A trim of much: fewer are alive than it names.
      return erase_where([&](uint64_t first, Group& group) {
        const uint64_t stop = std::min(first + kGroupBlocks, end);
        return take_from(group, std::max(first, block), stop, visit);
      });
    }
    while (block < end) {
      const uint64_t stop = std::min(end, (block / kGroupBlocks + 1) * kGroupBlocks);
      const auto found = follows(block) ? groups_.find(number_of(block)) : groups_.end();
      if (found != groups_.end() && take_from(found->second, block, stop, visit)) {
        groups_.erase(found);
      }
      block = stop;
    }
  }

  bool full() const { return groups_.size() > groups_max_; }
  // Follows half as many groups. Calls visit(Birth) for every live block of the dropped ones.
  template <typename Visit>
  void thin(const Visit& visit) {
    one_in_ *= 2;
    erase_where([&](uint64_t first, Group& group) {
      return !follows(first) && take_from(group, first, first + kGroupBlocks, visit);
    });
  }

  // Forgets the births for which gone(Birth) holds.
  template <typename Gone>
  void forget(const Gone& gone) {
    erase_where([&](uint64_t, Group& group) {
      for (Birth& birth : group.births) {
        if (birth.cell_plus == 0 || !gone(birth)) continue;
        birth = {};
        --group.alive;
        --alive_;
      }
      return group.alive == 0;
    });
  }

  uint64_t one_in() const { return one_in_; }  // a power of two
  uint64_t alive() const { return alive_; }    // of those followed

  // Forgets all births and follows all groups again.
  void clear() {
    groups_ = {};
    alive_ = 0;
    one_in_ = 1;
  }

 private:
  struct Group {
    std::array<Birth, kGroupBlocks> births{};
    uint32_t alive = 0;
  };
  using Groups = std::unordered_map<uint32_t, Group>;
  // A node is an entry, a pointer and what the allocator adds.
  static_assert(sizeof(Groups::value_type) + 3 * sizeof(void*) <= 160);

  static uint32_t number_of(uint64_t block) { return static_cast<uint32_t>(block / kGroupBlocks); }

  // Calls over(first block, group) for every group, and erases the group if that returns true.
  template <typename Over>
  void erase_where(const Over& over) {
    for (auto at = groups_.begin(); at != groups_.end();) {
      at = over(at->first * kGroupBlocks, at->second) ? groups_.erase(at) : std::next(at);
    }
  }

  // Returns whether nothing is left alive in the group.
  template <typename Visit>
  bool take_from(Group& group, uint64_t block, uint64_t end, const Visit& visit) {
    for (; block < end; ++block) {
      Birth& birth = group.births[block % kGroupBlocks];
      if (birth.cell_plus == 0) continue;
      visit(birth);
      birth = {};
      --group.alive;
      --alive_;
    }
    return group.alive == 0;
  }

  size_t groups_max_;
  uint64_t one_in_ = 1;
  uint64_t alive_ = 0;
  Groups groups_;
};

}  // namespace streamfs::classifier
