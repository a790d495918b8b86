// An allocator for large tables with random access. It asks the kernel for huge pages, which save
// TLB misses, and works with ordinary pages if there are none.
// Thread safety: as std::allocator.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace streamfs {

template <typename T>
struct HugePageAllocator {
  using value_type = T;
  static constexpr size_t kHugePage = size_t{2} << 20;

  HugePageAllocator() = default;
  template <typename U>
  // NOLINTNEXTLINE(google-explicit-constructor): an allocator converts to that of another type
  HugePageAllocator(const HugePageAllocator<U>& /*other*/) {}

  T* allocate(size_t count) {
    void* memory = ::operator new(count * sizeof(T), alignment(count));
    if (count * sizeof(T) >= kHugePage) (void)madvise(memory, count * sizeof(T), MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count) { ::operator delete(memory, alignment(count)); }
  bool operator==(const HugePageAllocator& /*other*/) const { return true; }

 private:
  static std::align_val_t alignment(size_t count) {
    return std::align_val_t{count * sizeof(T) >= kHugePage ? kHugePage : alignof(T)};
  }
};

template <typename T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace streamfs
