// A set of pages of 4 KiB, by offset, that only grows.
// Thread safety: any thread. After a crash: memory only.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "base/zeroed_array.h"

namespace streamfs::pmem {

class PageSet {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  // Holds pages at offsets below `bytes`, rounded up to kBits pages.
  explicit PageSet(uint64_t bytes) : words_(div_round_up(bytes, kPageBytes * kBits)) {}

  // Adds the page that holds `offset`; does nothing beyond the end.
  void add(uint64_t offset) {
    const Place at = place(offset);
    if (at.word >= words_.items().size()) return;
    const std::atomic_ref word(words_.items()[at.word]);
    if ((word.load(std::memory_order_relaxed) & at.bit) == 0)
      word.fetch_or(at.bit, std::memory_order_release);
  }
  // Returns whether the page that holds `offset` is in the set; true beyond the end, where pages
  // are not recorded.
  bool has(uint64_t offset) const {
    const Place at = place(offset);
    return at.word >= words_.items().size() || (load(at.word) & at.bit) != 0;
  }
  // Returns false only if no page of the range is in the set. Tests kBits pages at once, and so may
  // return true for pages beside the range. Requires: a range of up to kPageBytes lies in one page.
  bool may_have(uint64_t offset, uint64_t bytes) const {
    if (bytes <= kPageBytes) return has(offset);
    const uint64_t last = place(offset + bytes - 1).word;
    for (uint64_t word = place(offset).word; word <= last; ++word)
      if (word >= words_.items().size() || load(word) != 0) return true;
    return false;
  }

  static constexpr uint64_t kBits = 64;

 private:
  struct Place {
    uint64_t word, bit;
  };
  static Place place(uint64_t offset) {
    const uint64_t page = offset / kPageBytes;
    return {page / kBits, uint64_t{1} << page % kBits};
  }
  uint64_t load(uint64_t word) const {
    return std::atomic_ref(words_.items()[word]).load(std::memory_order_acquire);
  }
  ZeroedArray<uint64_t> words_;
};

}  // namespace streamfs::pmem
