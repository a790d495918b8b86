// Finds, for each number of valid pages, the closed block that was opened first.
// There is one heap for each number. A block that moves leaves a stale entry, which is skipped when
// it comes to the top; a heap with more stale entries than live ones is rebuilt. Memory is about 32
// bytes a block.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "ssd/geometry.h"
#include "ssd/victim/view.h"

namespace streamfs::ssd {

class OldestByValid {
 public:
  struct Entry {
    uint64_t opened_at;
    BlockIndex block;
    bool operator>(const Entry& other) const { return opened_at > other.opened_at; }
  };

  OldestByValid(size_t pages_per_block, size_t blocks)
      : heaps_(pages_per_block + 1), state_(blocks) {}

  void add(BlockIndex block, const BlockView& view) {
    state_[block] = {view.opened_at, view.valid};
    push(block);
  }
  void remove(BlockIndex block, uint32_t valid) {
    state_[block].valid = kNone;
    --heaps_[valid].live;
  }
  void moved(BlockIndex block, uint32_t from, uint32_t to) {
    --heaps_[from].live;
    state_[block].valid = to;
    push(block);
  }

  uint32_t lists() const { return static_cast<uint32_t>(heaps_.size()); }

  // Returns the block with `valid` valid pages that was opened first; null if there is none. The
  // result is valid until the next call of any method.
  const Entry* oldest(uint32_t valid) {
    Heap& heap = heaps_[valid];
    if (heap.live == 0) return nullptr;
    while (stale(heap.entries.front(), valid)) {
      std::ranges::pop_heap(heap.entries, std::greater{});
      heap.entries.pop_back();
    }
    return &heap.entries.front();
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct State {
    uint64_t opened_at = 0;
    uint32_t valid = kNone;
  };
  struct Heap {
    std::vector<Entry> entries;
    size_t live = 0;
  };

  bool stale(const Entry& entry, uint32_t valid) const {
    const State& now = state_[entry.block];
    return now.valid != valid || now.opened_at != entry.opened_at;
  }

  void push(BlockIndex block) {
    const uint32_t valid = state_[block].valid;
    Heap& heap = heaps_[valid];
    ++heap.live;
    if (heap.entries.size() > 2 * heap.live + 16) {
      std::erase_if(heap.entries, [&](const Entry& entry) { return stale(entry, valid); });
      std::ranges::make_heap(heap.entries, std::greater{});
    }
    heap.entries.push_back({state_[block].opened_at, block});
    std::ranges::push_heap(heap.entries, std::greater{});
  }

  std::vector<Heap> heaps_;   // by valid pages
  std::vector<State> state_;  // by block
};

}  // namespace streamfs::ssd
