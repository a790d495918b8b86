// PageMap: work while the host is idle. page_map.h includes this.
#pragma once

#include "ssd/ftl/page_map.h"

namespace streamfs::ssd {

// Returns the closed block with the fewest valid pages. The policy may choose a fuller block for
// its age, and that block may be above idle work's limit of valid pages.
template <typename M, typename V, typename R>
BlockIndex PageMap<M, V, R>::emptiest_closed() const {
  BlockIndex found = kNoBlock;
  for (BlockIndex i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].state != State::kClosed) continue;
    if (found == kNoBlock || blocks_[i].valid < blocks_[found].valid) found = i;
  }
  return found;
}

// Leaves the last free block to the host's own collections.
template <typename M, typename V, typename R>
bool PageMap<M, V, R>::collect_some(uint32_t valid_limit, uint32_t most) {
  if (free_.size() <= 1 || empty_failed() != 0) return false;
  BlockIndex victim = victim_.choose(clock_);
  if (victim != kNoBlock && blocks_[victim].valid > valid_limit) victim = emptiest_closed();
  if (victim == kNoBlock || blocks_[victim].valid > valid_limit ||
      blocks_[victim].valid == geometry_.pages_per_block)
    return false;
  return collect(victim, most) == 0;
}

template <typename M, typename V, typename R>
double PageMap<M, V, R>::host_victim_share() {
  const BlockIndex victim = victim_.choose(clock_);
  if (victim == kNoBlock) return host_victim_share_;
  const double best = static_cast<double>(blocks_[victim].valid) / geometry_.pages_per_block;
  return host_victim_share_ = std::min(host_victim_share_, best);
}

template <typename M, typename V, typename R>
bool PageMap<M, V, R>::level_wear(uint32_t spread, uint32_t most) {
  if (free_.size() <= 1 || empty_failed() != 0) return false;
  BlockIndex coldest = kNoBlock;
  for (BlockIndex i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].state != State::kClosed) continue;
    if (coldest == kNoBlock || blocks_[i].erases < blocks_[coldest].erases) coldest = i;
  }
  if (coldest == kNoBlock || blocks_[coldest].erases + spread >= wear().most) return false;
  levelling_ = true;
  const int error = collect(coldest, most);
  levelling_ = false;
  return error == 0;
}

template <typename M, typename V, typename R>
auto PageMap<M, V, R>::wear() const -> Wear {
  Wear wear{UINT32_MAX, 0};
  for (const Block& block : blocks_) {
    if (block.state == State::kBad) continue;
    wear.least = std::min(wear.least, block.erases);
    wear.most = std::max(wear.most, block.erases);
  }
  return wear;
}

}  // namespace streamfs::ssd
