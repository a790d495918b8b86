// A zeroed array that takes physical memory only for pages that are touched. No constructor runs:
// all bytes zero must be a valid T. If the allocation fails, the array is empty. A moved-from array
// must not be used. Thread safety: that of the elements.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <type_traits>

namespace streamfs {

template <typename T>
class ZeroedArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  ZeroedArray() = default;
  explicit ZeroedArray(size_t size) : memory_(std::calloc(size, sizeof(T))) {
    if (memory_) items_ = {static_cast<T*>(memory_.get()), size};
  }
  std::span<T> items() const { return items_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::span<T> items_;
};

}  // namespace streamfs
