// PageMap: host writes, trims, flushes, open blocks. page_map.h includes this.
#pragma once

#include "ssd/ftl/page_map.h"

namespace streamfs::ssd {

template <typename M, typename V, typename R>
PageMap<M, V, R>::PageMap(const Geometry& geometry, M& media, V& victim, R& router,
                          Counters& counters, LiveCounts& live)
    : geometry_(geometry),
      wordline_(geometry.plp ? 1 : geometry.wordline_pages),
      unit_(geometry.map_unit_pages),
      media_(media),
      victim_(victim),
      router_(router),
      counters_(counters),
      live_(live),
      location_(geometry.user_pages, kNoPage),
      resident_(geometry.physical_pages(), kNoPage),
      valid_(geometry.physical_pages()),
      blocks_(geometry.blocks),
      open_(geometry.frontiers(), kNoBlock) {
  SFS_ASSERT(geometry.blocks > 0 && geometry.pages_per_block % wordline_ == 0);
  for (BlockIndex block = 0; block < geometry.blocks; ++block) free_.push_back(block);
  survivors_.reserve(geometry.pages_per_block);
}

template <typename M, typename V, typename R>
void PageMap<M, V, R>::restore(std::span<const RecoveredBlock> blocks,
                               std::span<const Ppn> location, uint64_t next_sequence) {
  SFS_ASSERT(blocks.size() == blocks_.size() && location.size() == location_.size());
  sequence_ = next_sequence;
  clock_ = counters_.host_pages / unit_;
  live_.live_pages = 0;
  for (Lpn page = 0; page < location.size(); ++page) {
    if (location[page] == kNoPage) continue;
    place(location[page], page);
    ++blocks_[location[page] / geometry_.pages_per_block].valid;
  }
  free_.clear();
  live_.bad_blocks = 0;
  for (BlockIndex i = 0; i < blocks.size(); ++i) {
    Block& block = blocks_[i];
    block.written = block.committed = blocks[i].written;
    block.frontier = blocks[i].frontier;
    block.erases = blocks[i].erases;
    block.opened_at = clock_;
    if (blocks[i].retired) {
      block.state = State::kBad;
      ++live_.bad_blocks;
    } else if (blocks[i].failed) {
      block.state = State::kFailed;
      ++live_.bad_blocks;
      failed_.push_back(i);
    } else if (block.written == 0) {
      free_.push_back(i);
    } else if (block.written < geometry_.pages_per_block && open_[block.frontier] == kNoBlock) {
      block.state = State::kOpen;
      open_[block.frontier] = i;
    } else {
      close(i);
    }
  }
}

template <typename M, typename V, typename R>
void PageMap<M, V, R>::go_on_from(const PageMap& other) {
  SFS_ASSERT(location_.size() == other.location_.size() && open_.size() == other.open_.size() &&
             blocks_.size() == other.blocks_.size() && resident_.size() == other.resident_.size());
  victim_ = other.victim_;
  router_ = other.router_;
  live_ = other.live_;
  location_ = other.location_;
  resident_ = other.resident_;
  valid_ = other.valid_;
  blocks_ = other.blocks_;
  open_ = other.open_;
  free_ = other.free_;
  pending_ = other.pending_;
  failed_ = other.failed_;
  levelling_ = other.levelling_;
  sequence_ = other.sequence_;
  clock_ = other.clock_;
}

template <typename M, typename V, typename R>
int PageMap<M, V, R>::write(Lpn first, uint32_t count, FrontierId frontier, uint16_t vstream,
                            const std::byte* data) {
  StreamCounters& stream = counters_.streams[frontier % geometry_.streams];
  while (count > 0) {
    if (const int error = make_room(frontier); error != 0) return error;
    const BlockIndex block = open_[frontier];
    const Ppn at = next_page(block);
    const uint32_t pages = std::min(count, geometry_.pages_per_block - blocks_[block].written);
    if (const int error = media_.store(at, data, pages); error == kProgramFailed) {
      fail(block);
      if (const int full = empty_failed(); full != 0) return full;
      continue;
    } else if (error != 0) {
      return error;
    }
    const uint64_t first_sequence = sequence_;
    for (uint32_t i = 0; i < pages; ++i) {
      media_.stamp_host(at + i, first + i, {sequence_++, clock_++, vstream, frontier});
      if (const Ppn old = location_[first + i]; old != kNoPage)
        invalidate(old).supersede(frontier, sequence_);
      place(at + i, first + i);
    }
    blocks_[block].valid += pages;
    counters_.host_pages += pages * unit_;
    stream.host_pages += pages * unit_;
    advanced(block, pages, first_sequence);
    first += pages;
    count -= pages;
    if (data != nullptr) data += size_t{pages} * unit_ * kPageBytes;
  }
  return 0;
}

template <typename M, typename V, typename R>
void PageMap<M, V, R>::trim(Lpn page) {
  const Ppn at = location_[page];
  if (at == kNoPage) return;
  invalidate(at);
  location_[page] = kNoPage;
  counters_.trimmed_pages += unit_;
}

// Makes `page` live at `at`. Requires: its old place is dead.
template <typename M, typename V, typename R>
void PageMap<M, V, R>::place(Ppn at, Lpn page) {
  location_[page] = at;
  resident_[at] = page;
  valid_.set(at);
  live_.live_pages += unit_;
  if (live_.live_pages > live_.peak_live_pages) live_.peak_live_pages = live_.live_pages;
}

// Makes a physical page dead. Returns its block.
template <typename M, typename V, typename R>
auto PageMap<M, V, R>::invalidate(Ppn page) -> Block& {
  const BlockIndex index = page / geometry_.pages_per_block;
  Block& block = blocks_[index];
  valid_.clear(page);
  --block.valid;
  live_.live_pages -= unit_;
  if (block.state == State::kClosed) victim_.moved(index, block.valid + 1, block.valid);
  return block;
}

// Takes a block off the free ones: the most worn one for wear levelling, else the first of the
// queue. Returns kNoBlock if none is free and none can be erased.
template <typename M, typename V, typename R>
BlockIndex PageMap<M, V, R>::take_free() {
  if (free_.empty() && !pending_.empty()) {
    commit_for(blocks_[pending_.front()]);
    erase_ready();
  }
  if (free_.empty()) return kNoBlock;
  if (levelling_) {
    const auto worn =
        std::ranges::max_element(free_, {}, [&](BlockIndex i) { return blocks_[i].erases; });
    std::swap(*worn, free_.front());
  }
  const BlockIndex block = free_.front();
  free_.pop_front();
  return block;
}

template <typename M, typename V, typename R>
void PageMap<M, V, R>::open(FrontierId frontier, BlockIndex index) {
  Block& block = blocks_[index];
  SFS_ASSERT(block.state == State::kFree && block.written == 0);
  block.state = State::kOpen;
  block.frontier = frontier;
  block.opened_at = clock_;
  open_[frontier] = index;
  media_.opened(index, frontier);
}

template <typename M, typename V, typename R>
void PageMap<M, V, R>::close(BlockIndex index) {
  Block& block = blocks_[index];
  block.state = State::kClosed;
  victim_.add(index, {block.valid, block.opened_at, block.frontier, block.erases});
}

// Returns 0 once the frontier has an open block and another block is free, collecting garbage if
// necessary. Host writes leave the last free block to garbage collection, which needs at most one
// at a time. If a collection failed half way and no block is free, its next attempt needs the open
// blocks, and host writes end in ENOSPC.
template <typename M, typename V, typename R>
int PageMap<M, V, R>::make_room(FrontierId frontier) {
  while (!has_room(frontier) || free_.empty()) {
    if (worn_out()) return ENOSPC;
    if (free_.size() <= 1) {
      if (const int error = collect_to_low_water(); error != 0 && error != ENOSPC) return error;
      if (free_.size() <= 1) return has_room(frontier) && !free_.empty() ? 0 : ENOSPC;
      continue;
    }
    open(frontier, take_free());
    if (const int error = collect_to_low_water(); error != 0 && error != ENOSPC) return error;
  }
  return 0;
}

// Call after `pages` more pages of an open block were programmed or, without power-loss protection,
// buffered.
template <typename M, typename V, typename R>
void PageMap<M, V, R>::advanced(BlockIndex index, uint32_t pages, uint64_t first_sequence) {
  Block& block = blocks_[index];
  block.written += pages;
  SFS_ASSERT(block.written <= geometry_.pages_per_block);
  const uint32_t whole = block.written / wordline_ * wordline_;
  if (whole > block.committed) {
    block.committed = whole;
    block.uncommitted_since = UINT64_MAX;
    media_.committed(index, whole);
  }
  if (block.written > block.committed && block.uncommitted_since == UINT64_MAX)
    block.uncommitted_since = first_sequence;
  if (block.written == geometry_.pages_per_block) {
    open_[block.frontier] = kNoBlock;
    close(index);
  }
  if (!pending_.empty()) erase_ready();
}

// Fills the wordline at the end of an open block with padding, which commits it. After
// kProgramFailed the block is failed, and the caller must call empty_failed().
template <typename M, typename V, typename R>
int PageMap<M, V, R>::pad(BlockIndex index) {
  Block& block = blocks_[index];
  const uint64_t first_sequence = sequence_;
  const Ppn at = next_page(index);
  const uint32_t pages = wordline_ - block.written % wordline_;
  if (const int error = media_.store(at, nullptr, pages); error != 0) {
    if (error == kProgramFailed) fail(index);
    return error;
  }
  for (uint32_t i = 0; i < pages; ++i) {
    media_.stamp_pad(at + i, sequence_++);
    resident_[at + i] = kNoPage;
  }
  counters_.pad_pages += pages * unit_;
  advanced(index, pages, first_sequence);
  return 0;
}

template <typename M, typename V, typename R>
void PageMap<M, V, R>::seal(FrontierId frontier) {
  const BlockIndex block = open_[frontier];
  if (block == kNoBlock || blocks_[block].written == 0) return;
  if (wordline_ != 1 || free_.size() <= geometry_.low_water + withheld_) return;
  open_[frontier] = kNoBlock;
  close(block);
}

template <typename M, typename V, typename R>
int PageMap<M, V, R>::pad_open(FrontierId frontier) {
  const BlockIndex block = open_[frontier];
  if (block == kNoBlock || blocks_[block].uncommitted_since == UINT64_MAX) return 0;
  const int error = pad(block);
  return error == kProgramFailed ? 0 : error;
}

template <typename M, typename V, typename R>
int PageMap<M, V, R>::commit(FrontierId frontier) {
  if (const int error = pad_open(frontier)) return error;
  return empty_failed();
}

// Buffered copies need no flush: their source is erased only after they are committed.
template <typename M, typename V, typename R>
int PageMap<M, V, R>::flush() {
  for (FrontierId frontier = 0; frontier < geometry_.streams; ++frontier)
    if (const int error = pad_open(frontier)) return error;
  return empty_failed();
}

}  // namespace streamfs::ssd
