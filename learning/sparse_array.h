// An array of leaves that are allocated on first use: an untouched leaf costs a pointer.
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace streamfs::learning {

template <typename T, size_t kLeaf>
class SparseArray {
 public:
  SparseArray() = default;
  explicit SparseArray(uint64_t size) : leaves_((size + kLeaf - 1) / kLeaf) {}

  // Returns the size asked for, rounded up to whole leaves.
  uint64_t size() const { return leaves_.size() * kLeaf; }
  // Returns the element, or T{} if its leaf was never touched or `index` is beyond the end.
  T find(uint64_t index) const {
    const uint64_t leaf = index / kLeaf;
    if (leaf >= leaves_.size() || !leaves_[leaf]) return {};
    return (*leaves_[leaf])[index % kLeaf];
  }
  // Requires: index < size().
  T& at(uint64_t index) {
    std::unique_ptr<Leaf>& leaf = leaves_[index / kLeaf];
    if (!leaf) leaf = std::make_unique<Leaf>();
    return (*leaf)[index % kLeaf];
  }

 private:
  using Leaf = std::array<T, kLeaf>;
  std::vector<std::unique_ptr<Leaf>> leaves_;
};

}  // namespace streamfs::learning
