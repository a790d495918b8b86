#include "fuse-fs/meta/freed_runs.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include "base/types.h"

namespace streamfs::meta {

// freed_ is nearly, not exactly, in the order of records, because several threads report.
void FreedRuns::release_up_to(TxId tx) {
  std::deque<Freed> later;
  for (const Freed& each : freed_) {
    if (each.tx > tx) {
      later.push_back(each);
    } else {
      merge(released_, each.run.first.value, each.run.first.value + each.run.count);
    }
  }
  freed_ = std::move(later);
}

void FreedRuns::found(uint64_t word, uint64_t bits) {
  while (bits != 0) {
    const int first = std::countr_zero(bits);
    const int length = std::countr_one(bits >> first);
    merge(released_, word * 64 + static_cast<uint64_t>(first),
          word * 64 + static_cast<uint64_t>(first + length));
    bits &= length == 64 ? 0 : ~(((uint64_t{1} << length) - 1) << first);
  }
}

void FreedRuns::merge(Runs& runs, uint64_t first, uint64_t end) {
  auto after = runs.lower_bound(first);
  if (after != runs.end() && after->first == end) {
    end = after->second;
    after = runs.erase(after);
  }
  if (after != runs.begin()) {
    const auto before = std::prev(after);
    if (before->second == first) {
      before->second = end;
      return;
    }
  }
  runs.emplace_hint(after, first, end);
}

std::optional<BlockRun> FreedRuns::take(uint64_t max_blocks, uint64_t group_blocks) {
  return take_from(released_, max_blocks, group_blocks);
}

std::optional<BlockRun> FreedRuns::take_discarded(uint64_t max_blocks, uint64_t group_blocks) {
  return take_from(discarded_, max_blocks, group_blocks);
}

std::optional<BlockRun> FreedRuns::take_from(Runs& runs, uint64_t max_blocks,
                                             uint64_t group_blocks) {
  if (runs.empty()) return std::nullopt;
  const auto [first, end] = *runs.begin();
  runs.erase(runs.begin());
  const uint64_t stop = std::min({end, round_down(first, max_blocks) + max_blocks,
                                  round_down(first, group_blocks) + group_blocks});
  if (stop < end) runs.emplace(stop, end);
  return BlockRun{BlockNo{first}, stop - first};
}

}  // namespace streamfs::meta
