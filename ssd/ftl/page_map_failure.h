// PageMap: blocks in which a program failed, and the end of a worn-out device. page_map.h includes
// this; page_map_gc.h handles failed erases.
#pragma once

#include "ssd/ftl/page_map.h"

namespace streamfs::ssd {

// Marks an open block as failed. Its pages, also buffered ones, stay readable until empty_failed()
// has moved them.
template <typename M, typename V, typename R>
void PageMap<M, V, R>::fail(BlockIndex index) {
  Block& block = blocks_[index];
  SFS_ASSERT(block.state == State::kOpen && open_[block.frontier] == index);
  open_[block.frontier] = kNoBlock;
  block.state = State::kFailed;
  failed_.push_back(index);
  ++counters_.program_failures;
  ++live_.bad_blocks;
  media_.failed(index);
}

// Moves the live pages of failed blocks, commits all buffered pages, and then retires the blocks. A
// page in a failed block's buffer may have made an older version of the page dead. While any block
// is failed, therefore, erasable() lets no block be erased. Returns an errno value, 0 for none;
// after an error the blocks stay for the next attempt.
template <typename M, typename V, typename R>
int PageMap<M, V, R>::empty_failed() {
  if (failed_.empty()) return 0;
  for (size_t moved = 0;;) {
    for (; moved < failed_.size(); ++moved)
      if (const int error = move_survivors(failed_[moved], UINT32_MAX); error != 0) return error;
    const int error = commit_all();
    if (error == 0) break;
    if (error != kProgramFailed) return error;
  }
  for (const BlockIndex index : failed_) {
    const uint32_t erases = blocks_[index].erases;
    SFS_ASSERT(blocks_[index].valid == 0);
    blocks_[index] = Block{};
    blocks_[index].erases = erases;
    blocks_[index].state = State::kBad;
    media_.retired(index);
  }
  failed_.clear();
  if (!pending_.empty()) erase_ready();
  return 0;
}

// Pads every open wordline, so that no page is in a buffer. Returns an errno value, or
// kProgramFailed if a program failed: then another block has failed.
template <typename M, typename V, typename R>
int PageMap<M, V, R>::commit_all() {
  int result = 0;
  for (size_t frontier = 0; wordline_ != 1 && frontier < open_.size(); ++frontier) {
    const BlockIndex block = open_[frontier];
    if (block == kNoBlock || blocks_[block].uncommitted_since == UINT64_MAX) continue;
    const int error = pad(block);
    if (error != 0 && error != kProgramFailed) return error;
    if (error != 0) result = error;
  }
  return result;
}

// Returns whether too few good blocks are left for garbage collection.
template <typename M, typename V, typename R>
bool PageMap<M, V, R>::worn_out() const {
  return live_.bad_blocks > 0 && geometry_.blocks < geometry_.needed_blocks() + live_.bad_blocks;
}

}  // namespace streamfs::ssd
