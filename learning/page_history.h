// What is remembered of each page of the device that was touched lately: when it was last written,
// how long what it held before lived, and how that died; and for the 64 KiB it lies in, how long
// data lives there.
//
// In at most `bytes_max`: 64 KiB of pages go together, eight of these to a set, and where a set is
// full the ones touched longest ago make room. Where all of a device fits, nothing is forgotten.
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
  uint32_t written = 0;     // clock in pages, its low half: enough for 16 TiB of writes
  uint8_t last = 0;         // 1 + half_log2 of the last lifetime that ended; 0: none has
  uint8_t before = 0;       // the one before
  uint8_t trim_length = 0;  // 1 + half_log2 of the trim that ended it; 0: an overwrite, or nothing
  bool ever : 1 = false;    // written
  bool alive : 1 = false;

  // Pages written since; 0 if it never was.
  uint32_t age(uint64_t clock) const { return ever ? static_cast<uint32_t>(clock) - written : 0; }
};
static_assert(sizeof(PageLife) == 8);

class PageHistory {
 public:
  static constexpr uint64_t kGroupPages = 16;
  static constexpr size_t kBytesMax = size_t{32} << 20;

  struct Group {
    std::array<PageLife, kGroupPages> pages{};
    float mean_life = -1;  // running, of half_log2; negative: nothing has died
  };

  explicit PageHistory(uint64_t pages, size_t bytes_max = kBytesMax);

  uint64_t size() const { return pages_; }
  // Null where nothing was touched, or it is forgotten.
  const Group* find_group(uint64_t page) const;
  // As if it was never touched where that is so, or forgotten.
  PageLife find(uint64_t page) const {
    const Group* const group = find_group(page);
    return group == nullptr ? PageLife{} : group->pages[page % kGroupPages];
  }
  // Makes room. Precondition: page < size().
  Group& group_of(uint64_t page);

  // Calls visit(page, PageLife&, Group&) for what is remembered of [first, end).
  template <typename Visit>
  void for_each_known(uint64_t first, uint64_t end, const Visit& visit) {
    if ((end - first) / kGroupPages > groups_.items().size()) {  // More than there is to look at.
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
    std::array<uint32_t, kWays> touched{};  // modulo 2^32
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
  uint32_t touches_ = 0;
  std::vector<Set> sets_;
  ZeroedArray<Group> groups_;  // kWays to a set
};

}  // namespace streamfs::learning
