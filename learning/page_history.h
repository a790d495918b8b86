// The history of recently written pages: when a page was last written, how long its last two
// contents lived and whether a trim ended the last one. Each group of 64 KiB also has a mean
// lifetime.
//
// Memory is bounded by `bytes_max`: a set-associative cache of groups, eight to a set, that
// replaces the group written longest ago. If all groups of the device fit, none is ever replaced.
// Thread safety: none. Crash: memory only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/zeroed_array.h"

namespace streamfs::learning {

struct PageLife {
  uint32_t written = 0;     // low 32 bits of the clock in pages: wraps after 16 TiB of writes
  uint8_t last = 0;         // 1 + half_log2 of the last lifetime that ended; 0: none has
  uint8_t before = 0;       // the lifetime before `last`, likewise
  uint8_t trim_length = 0;  // 1 + half_log2 of the trim that ended `last`; 0: no trim did
  bool ever : 1 = false;    // was written
  bool alive : 1 = false;

  // Returns the pages written to the device since this one was; 0 if it never was.
  uint32_t age(uint64_t clock) const { return ever ? static_cast<uint32_t>(clock) - written : 0; }
};
static_assert(sizeof(PageLife) == 8);

class PageHistory {
 public:
  static constexpr uint64_t kGroupPages = 16;
  static constexpr size_t kBytesMax = size_t{32} << 20;

  struct Group {
    std::array<PageLife, kGroupPages> pages{};
    float mean_life = -1;  // running mean of 2 · log2(lifetime + 1); negative: nothing has died
  };

  explicit PageHistory(uint64_t pages, size_t bytes_max = kBytesMax);

  uint64_t size() const { return pages_; }
  // Returns null if the group was never written or is forgotten.
  const Group* find_group(uint64_t page) const;
  // Returns PageLife{} if the page was never written or is forgotten.
  PageLife find(uint64_t page) const {
    const Group* const group = find_group(page);
    return group == nullptr ? PageLife{} : group->pages[page % kGroupPages];
  }
  // Returns whether the data that was written to `page` at `clock` is alive. A forgotten page
  // counts as alive, because it was probably not rewritten: its group was replaced as the one
  // written longest ago. A trim of a forgotten page goes unnoticed.
  bool lives(uint64_t page, uint64_t clock) const {
    const PageLife life = find(page);
    return !life.ever || (life.alive && life.written == static_cast<uint32_t>(clock));
  }
  // Returns the page's group and counts it as used. A new group may replace another one, whose
  // reference then names the new group.
  // Requires: page < size().
  Group& group_of(uint64_t page);

  // Calls visit(page, PageLife&, Group&) for each page of [first, end) whose group is remembered,
  // in no particular order.
  template <typename Visit>
  void for_each_known(uint64_t first, uint64_t end, const Visit& visit) {
    if ((end - first) / kGroupPages > groups_.items().size()) {  // visit every group instead
      for (uint32_t way = 0; way < groups_.items().size(); ++way) {
        const uint32_t tag = sets_[way / kWays].tags[way % kWays];
        if (tag != 0) visit_group(groups_.items()[way], tag - 1, first, end, visit);
      }
      return;
    }
    for (uint64_t at = first; at < end; at = (at / kGroupPages + 1) * kGroupPages) {
      if (Group* const group = find_way(at)) {
        visit_group(*group, at / kGroupPages, first, end, visit);
      }
    }
  }

 private:
  static constexpr uint32_t kWays = 8;
  struct Set {
    std::array<uint32_t, kWays> tags{};     // number of the group, plus one; 0: none
    std::array<uint32_t, kWays> touched{};  // touches_ at the last group_of()
  };
  static_assert(sizeof(Set) == 64);

  size_t set_of(uint64_t number) const;
  Group* find_way(uint64_t page) const;

  template <typename Visit>
  static void visit_group(Group& group, uint64_t number, uint64_t first, uint64_t end,
                          const Visit& visit) {
    const uint64_t begin = number * kGroupPages;
    for (uint64_t at = std::max(begin, first); at < std::min(begin + kGroupPages, end); ++at) {
      visit(at, group.pages[at % kGroupPages], group);
    }
  }

  uint64_t pages_;
  bool all_fits_;
  uint32_t touches_ = 0;  // calls of group_of(), modulo 2^32
  std::vector<Set> sets_;
  ZeroedArray<Group> groups_;  // kWays to a set
};

}  // namespace streamfs::learning
