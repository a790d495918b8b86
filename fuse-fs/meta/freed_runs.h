// Keeps the runs of blocks that wait for a trim. A freed run first waits until release_up_to()
// makes it safe to reuse. Released runs are merged and in order. Discarded runs, which were written
// and which no record names, are kept beside them and wait for nothing.
//
// Thread safety: none; the allocator's mutex guards it.
// After a crash: nothing is left; the untrimmed bitmap has the freed runs.
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
  // Adds blocks that an earlier mount left: `bits` of a word of the untrimmed bitmap. They are
  // released at once, because the records that freed them are home.
  void found(uint64_t word, uint64_t bits);

  bool none_released() const { return released_.empty(); }
  // These two remove and return the first released or discarded run, cut at the next multiple of
  // either number. nullopt: there is none.
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
