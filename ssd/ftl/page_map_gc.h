// PageMap: garbage collection and erasing. page_map.h includes this.
//
//   collect(): live pages move to other blocks ─► retire() ──nothing holds it back──────► erase()
//                                                    └─► pending_ ─► erase_ready() ───────┘
//
// Without power-loss protection, a page stays in the SSD's buffer until its wordline is full or
// padded; then it is *committed*. A power cut loses a page in the buffer, and the version or copy
// that it superseded is the data again. A block with such an older page is held back: it waits in
// pending_ until the newer page is committed. If more than kPendingErases blocks wait, or no block
// is free, commit_for() pads the wordlines that hold back the first of them.
#pragma once

#include "ssd/ftl/page_map.h"

namespace streamfs::ssd {

template <typename M, typename V, typename R>
int PageMap<M, V, R>::collect_to_low_water() {
  // The padding of commit_for() programs pages. With small blocks, it may take as many pages as
  // collections free. The number of attempts is therefore limited, and then the device is full.
  for (uint32_t attempts = 2 * geometry_.blocks; free_.size() <= geometry_.low_water + withheld_;
       --attempts) {
    if (attempts == 0) return ENOSPC;
    if (const int error = empty_failed(); error != 0) return error;
    if (pending_.size() > kPendingErases) {
      commit_for(blocks_[pending_.front()]);
      erase_ready();
    } else if (const int error = collect(); error != 0) {
      return error;
    }
  }
  return 0;
}

// Collects one block. ENOSPC: no closed block holds a dead page, or there is no room for the
// copies.
template <typename M, typename V, typename R>
int PageMap<M, V, R>::collect() {
  const BlockIndex victim = victim_.choose(clock_);
  if (victim == kNoBlock) return ENOSPC;
  // Some policies choose a full block and then the next one; fail only if no block has a dead page.
  if (blocks_[victim].valid == geometry_.pages_per_block && !any_to_gain()) return ENOSPC;
  constexpr double kNewest = 1.0 / 16;  // weight of this victim in the moving mean
  const double share = static_cast<double>(blocks_[victim].valid) / geometry_.pages_per_block;
  host_victim_share_ += (share - host_victim_share_) * (host_victim_share_ == 0 ? 1 : kNewest);
  return collect(victim, UINT32_MAX);
}

// Moves up to `most` pages of a closed block. Retires the block once it has no live page.
template <typename M, typename V, typename R>
int PageMap<M, V, R>::collect(BlockIndex victim, uint32_t most) {
  Block& block = blocks_[victim];
  victim_.remove(victim, block.valid);
  block.state = State::kCollecting;
  if (block.valid <= most) router_.collected(block.frontier, block.opened_at, clock_);
  const int error = move_survivors(victim, most);
  if (error != 0 || block.valid != 0) {
    close(victim);
    return error;
  }
  retire(victim);
  return empty_failed();
}

// Copies a block's live pages to the router's frontiers. If a target fails, the next one is used.
template <typename M, typename V, typename R>
int PageMap<M, V, R>::move_survivors(BlockIndex victim, uint32_t most) {
  const Block& block = blocks_[victim];
  gather_valid(victim);
  if (survivors_.size() > most) survivors_.resize(most);
  // Policies learn from each call, so there is one for each page. Only after a failed program are
  // the pages of that run, but for its first, asked for again.
  const auto ask = [&](size_t i) {
    if constexpr (requires { router_.reads(Ppn{}); }) router_.reads(survivors_[i]);
    return router_.for_copy(resident_[survivors_[i]], block.frontier, clock_);
  };
  FrontierId wanted = survivors_.empty() ? FrontierId{0} : ask(0);
  for (size_t i = 0, end = 0; i < survivors_.size(); i = end) {
    const FrontierId frontier = room_for_copy(wanted);
    if (frontier == UINT16_MAX) return ENOSPC;
    const uint32_t room = geometry_.pages_per_block - blocks_[open_[frontier]].written;
    FrontierId next = wanted;
    for (end = i + 1; end < survivors_.size(); ++end)
      if (next = ask(end); next != wanted || end - i == room) break;
    const int error = copy_run(victim, std::span(survivors_).subspan(i, end - i), frontier);
    if (error == kProgramFailed) {
      fail(open_[frontier]);
      end = i;
      continue;
    }
    if (error != 0) return error;
    wanted = next;
  }
  return 0;
}

template <typename M, typename V, typename R>
bool PageMap<M, V, R>::any_to_gain() const {
  return std::ranges::any_of(blocks_, [&](const Block& block) {
    return block.state == State::kClosed && block.valid < geometry_.pages_per_block;
  });
}

template <typename M, typename V, typename R>
void PageMap<M, V, R>::gather_valid(BlockIndex block) {
  survivors_.clear();
  constexpr uint32_t kPerLine = 64 / sizeof(Lpn);
  const Lpn* residents = &resident_[uint64_t{block} * geometry_.pages_per_block];
  for (uint32_t i = 0; i < geometry_.pages_per_block; i += kPerLine)
    __builtin_prefetch(residents + i);
  valid_.for_each_set(uint64_t{block} * geometry_.pages_per_block, geometry_.pages_per_block,
                      [&](uint64_t page) {
                        prefetch(resident_[page]);  // for copy_run()
                        if constexpr (requires { router_.prefetch(resident_[page]); })
                          router_.prefetch(resident_[page]);
                        survivors_.push_back(static_cast<Ppn>(page));
                      });
  SFS_ASSERT(survivors_.size() == blocks_[block].valid);
}

// If no block is free, a copy joins another open block: progress comes before separation.
template <typename M, typename V, typename R>
FrontierId PageMap<M, V, R>::room_for_copy(FrontierId wanted) {
  if (has_room(wanted)) return wanted;
  if (const BlockIndex block = take_free(); block != kNoBlock) {
    open(wanted, block);
    return wanted;
  }
  for (size_t frontier = open_.size(); frontier-- > 0;)
    if (has_room(static_cast<FrontierId>(frontier))) return static_cast<FrontierId>(frontier);
  return UINT16_MAX;
}

template <typename M, typename V, typename R>
int PageMap<M, V, R>::copy_run(BlockIndex victim, std::span<const Ppn> from, FrontierId frontier) {
  const BlockIndex target = open_[frontier];
  const Ppn at = next_page(target);
  if (const int error = media_.move(from, at); error != 0) return error;
  const uint64_t first_sequence = sequence_;
  for (uint32_t i = 0; i < from.size(); ++i) {
    media_.stamp_copy(at + i, from[i], sequence_++);
    const Lpn page = resident_[from[i]];
    valid_.clear(from[i]);
    location_[page] = at + i;
    resident_[at + i] = page;
    valid_.set(at + i);
  }
  blocks_[victim].supersede(frontier, sequence_ - 1);
  const auto pages = static_cast<uint32_t>(from.size());
  blocks_[victim].valid -= pages;
  blocks_[target].valid += pages;
  counters_.gc_pages += pages * unit_;
  counters_.streams[blocks_[victim].frontier % geometry_.streams].gc_pages += pages * unit_;
  advanced(target, pages, first_sequence);
  return 0;
}

// Erases a block without live pages, or lets it wait in pending_ if it is held back.
template <typename M, typename V, typename R>
void PageMap<M, V, R>::retire(BlockIndex block) {
  if (erasable(blocks_[block])) return erase(block);
  pending_.push_back(block);
}

// Returns whether the frontier's open block has a page in the buffer that superseded a page of
// `dead`. Errs towards true, because `dead` keeps only the last sequence, and one bit for all
// frontiers whose numbers differ by 64.
template <typename M, typename V, typename R>
bool PageMap<M, V, R>::holds_back(size_t frontier, const Block& dead) const {
  return (dead.superseded_by >> (frontier % 64) & 1) != 0 && open_[frontier] != kNoBlock &&
         blocks_[open_[frontier]].uncommitted_since <= dead.superseded_sequence;
}

template <typename M, typename V, typename R>
bool PageMap<M, V, R>::erasable(const Block& dead) const {
  if (wordline_ == 1) return true;     // power-loss protection: each page is committed at once
  if (!failed_.empty()) return false;  // failed blocks hold buffered pages, too
  for (size_t frontier = 0; frontier < open_.size(); ++frontier)
    if (holds_back(frontier, dead)) return false;
  return true;
}

// Pads the wordlines that hold `dead` back, which commits their pages.
template <typename M, typename V, typename R>
void PageMap<M, V, R>::commit_for(const Block& dead) {
  for (size_t frontier = 0; frontier < open_.size(); ++frontier)
    if (holds_back(frontier, dead)) (void)pad(open_[frontier]);
}

// Erases each waiting block that nothing holds back.
template <typename M, typename V, typename R>
void PageMap<M, V, R>::erase_ready() {
  for (size_t i = 0; i < pending_.size();) {
    const BlockIndex block = pending_[i];
    if (!erasable(blocks_[block])) {
      ++i;
      continue;
    }
    pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
    erase(block);
  }
}

template <typename M, typename V, typename R>
void PageMap<M, V, R>::erase(BlockIndex block) {
  SFS_ASSERT(blocks_[block].valid == 0);
  const uint32_t erases = blocks_[block].erases + 1;
  blocks_[block] = Block{};
  blocks_[block].erases = erases;
  if (!media_.erased(block)) {
    ++counters_.erase_failures;
    ++live_.bad_blocks;
    blocks_[block].state = State::kBad;
    return;
  }
  ++counters_.erases;
  free_.push_back(block);
}

}  // namespace streamfs::ssd
