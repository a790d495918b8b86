#include "learning/page_history.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "base/mix.h"
#include "base/zeroed_array.h"

namespace streamfs::learning {
namespace {

constexpr uint64_t ceil_div(uint64_t value, uint64_t by) {
  return value / by + (value % by == 0 ? 0 : 1);
}

}  // namespace

PageHistory::PageHistory(uint64_t pages, size_t bytes_max) : pages_(pages) {
  const uint64_t most = std::max<uint64_t>(bytes_max / (sizeof(Set) + kWays * sizeof(Group)), 1);
  const uint64_t wanted = std::max<uint64_t>(ceil_div(ceil_div(pages, kGroupPages), kWays), 1);
  all_fits_ = wanted <= most;
  sets_.resize(std::min(most, wanted));
  groups_ = ZeroedArray<Group>(sets_.size() * kWays);
  SFS_ASSERT(!groups_.items().empty());
}

// Neighbours are spread evenly as they are; where not all fits, writes at a stride must not meet.
size_t PageHistory::set_of(uint64_t number) const {
  return (all_fits_ ? number : mix64(number)) % sets_.size();
}

PageHistory::Group* PageHistory::find_way(uint64_t page) const {
  if (page >= pages_) return nullptr;
  const uint64_t number = page / kGroupPages;
  const size_t set = set_of(number);
  const auto& tags = sets_[set].tags;
  const auto way = std::ranges::find(tags, static_cast<uint32_t>(number + 1));
  if (way == tags.end()) return nullptr;
  return &groups_.items()[set * kWays + static_cast<size_t>(way - tags.begin())];
}

const PageHistory::Group* PageHistory::find_group(uint64_t page) const {
  return find_way(page);
}

PageHistory::Group& PageHistory::group_of(uint64_t page) {
  const uint64_t number = page / kGroupPages;
  const size_t at = set_of(number);
  Set& set = sets_[at];
  const auto tag = static_cast<uint32_t>(number + 1);
  auto way = static_cast<size_t>(std::ranges::find(set.tags, tag) - set.tags.begin());
  const bool fresh = way == kWays;
  if (fresh) {
    const auto unused = [&](size_t i) {
      return set.tags[i] == 0 ? uint64_t{1} << 32 : uint64_t{touches_ - set.touched[i]};
    };
    way = 0;
    for (size_t i = 1; i < kWays; ++i) way = unused(i) > unused(way) ? i : way;
    set.tags[way] = tag;
  }
  set.touched[way] = ++touches_;
  Group& group = groups_.items()[at * kWays + way];
  if (fresh) group = {};
  return group;
}

}  // namespace streamfs::learning
