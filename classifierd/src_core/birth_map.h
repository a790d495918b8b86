// Block → when it was written and in which cell, for blocks alive. Eight bytes a block, allocated
// by 65,536-block leaves on first use, so that an absurd device size costs nothing.
// Thread safety: none. Crash: rebuilt by watching; nothing persistent.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace streamfs::classifier {

class BirthMap {
 public:
  struct Birth {
    uint32_t clock = 0;      // low half of the clock in pages: enough for 16 TiB of writes
    uint32_t cell_plus = 0;  // cell + 1; 0 = not alive
  };

  explicit BirthMap(uint64_t capacity_blocks)
      : leaves_((capacity_blocks + kLeafBlocks - 1) / kLeafBlocks) {}

  void set(uint64_t block, uint64_t clock, uint32_t cell) {
    auto& leaf = leaves_[block / kLeafBlocks];
    if (!leaf) leaf = std::make_unique<Leaf>();
    Birth& birth = leaf->births[block % kLeafBlocks];
    leaf->alive += birth.cell_plus == 0 ? 1U : 0U;
    alive_ += birth.cell_plus == 0 ? 1U : 0U;
    birth = {static_cast<uint32_t>(clock), cell + 1};
  }

  // Calls visit(block, Birth) for every block alive in the range, which is dead afterwards.
  template <typename Visit>
  void take(uint64_t block, uint64_t pages, const Visit& visit) {
    for (const uint64_t end = block + pages; block < end;) {
      Leaf* const leaf = leaves_[block / kLeafBlocks].get();
      const uint64_t stop = std::min(end, (block / kLeafBlocks + 1) * kLeafBlocks);
      if (leaf == nullptr || leaf->alive == 0) {
        block = stop;
        continue;
      }
      for (; block < stop; ++block) take_one(*leaf, block, visit);
    }
  }

  uint64_t alive() const { return alive_; }

  void clear() {
    for (auto& leaf : leaves_) leaf.reset();
    alive_ = 0;
  }

 private:
  static constexpr uint64_t kLeafBlocks = 1U << 16;
  struct Leaf {
    uint32_t alive = 0;
    std::array<Birth, kLeafBlocks> births{};
  };

  template <typename Visit>
  void take_one(Leaf& leaf, uint64_t block, const Visit& visit) {
    Birth& birth = leaf.births[block % kLeafBlocks];
    if (birth.cell_plus == 0) return;
    visit(block, birth);
    birth = {};
    --leaf.alive;
    --alive_;
  }

  uint64_t alive_ = 0;
  std::vector<std::unique_ptr<Leaf>> leaves_;
};

}  // namespace streamfs::classifier
