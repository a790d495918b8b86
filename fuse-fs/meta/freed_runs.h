// Blocks between the record that freed them and their trim: waiting for what makes them safe to
// reuse, then merged runs in order. Beside them blocks that were written and that no record names.
// Thread safety: none; the allocator's mutex guards it. Crash: memory only; the untrimmed bitmap
// says what waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "base/types.h"

namespace streamfs::meta {

struct BlockRun {
  BlockNo first;
  uint64_t count = 0;
  friend bool operator==(const BlockRun&, const BlockRun&) = default;
};

class FreedRuns {
 public:
  void freed(BlockRun run, TxId tx) { freed_.push_back({run, tx}); }
  void release_up_to(TxId tx);
  // Left by an earlier mount, bits of the bitmap word: their free records are home, so nothing else
  // needs to be waited for.
  void found(uint64_t word, uint64_t bits);

  bool none_released() const { return released_.empty(); }
  // The first released run, up to the next multiple of either number.
  std::optional<BlockRun> take(uint64_t max_blocks, uint64_t group_blocks);

  void discarded(BlockRun run) { merge(discarded_, run.first.value, run.first.value + run.count); }
  std::optional<BlockRun> take_discarded(uint64_t max_blocks, uint64_t group_blocks);

 private:
  struct Freed {
    BlockRun run;
    TxId tx;
  };
  using Runs = std::map<uint64_t, uint64_t>;  // first → end, merged
  static void merge(Runs& runs, uint64_t first, uint64_t end);
  static std::optional<BlockRun> take_from(Runs& runs, uint64_t max_blocks, uint64_t group_blocks);

  std::deque<Freed> freed_;
  Runs released_, discarded_;
};

}  // namespace streamfs::meta
