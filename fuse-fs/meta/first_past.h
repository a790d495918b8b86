// Look-ups in maps of ranges, which are keyed by where a range begins.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <iterator>

namespace streamfs::meta {

// Returns the entry that contains `from`, else the first entry after it, else end(). `end_of`
// returns the first place behind an entry. Requires: the ranges are disjoint.
template <typename Map, typename EndOf>
auto first_past(Map& map, uint64_t from, EndOf end_of) {
  auto found = map.upper_bound(from);
  if (found != map.begin() && end_of(*std::prev(found)) > from) --found;
  return found;
}

// For maps whose values have an `extent`.
inline constexpr auto kEndOfExtent = [](const auto& entry) { return entry.second.extent.end(); };

}  // namespace streamfs::meta
