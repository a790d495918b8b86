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

// Threads report in nearly, not exactly, the order of their records.
void FreedRuns::release_up_to(TxId tx) {
  std::deque<Freed> later;
  for (const Freed& each : freed_) {
    if (each.tx > tx) {
      later.push_back(each);
    } else {
      release(each.run.first.value, each.run.first.value + each.run.count);
    }
  }
  freed_ = std::move(later);
}

void FreedRuns::found(uint64_t word, uint64_t bits) {
  while (bits != 0) {
    const int first = std::countr_zero(bits);
    const int length = std::countr_one(bits >> first);
    release(word * 64 + static_cast<uint64_t>(first),
            word * 64 + static_cast<uint64_t>(first + length));
    bits &= length == 64 ? 0 : ~(((uint64_t{1} << length) - 1) << first);
  }
}

void FreedRuns::release(uint64_t first, uint64_t end) {
  auto after = released_.lower_bound(first);
  if (after != released_.end() && after->first == end) {
    end = after->second;
    after = released_.erase(after);
  }
  if (after != released_.begin()) {
    const auto before = std::prev(after);
    if (before->second == first) {
      before->second = end;
      return;
    }
  }
  released_.emplace_hint(after, first, end);
}

std::optional<BlockRun> FreedRuns::take(uint64_t max_blocks, uint64_t group_blocks) {
  if (released_.empty()) return std::nullopt;
  const auto [first, end] = *released_.begin();
  released_.erase(released_.begin());
  const uint64_t stop = std::min({end, round_down(first, max_blocks) + max_blocks,
                                  round_down(first, group_blocks) + group_blocks});
  if (stop < end) released_.emplace(stop, end);
  return BlockRun{BlockNo{first}, stop - first};
}

}  // namespace streamfs::meta
