// A fixed number of bits. Thread safety: none.
#pragma once

#include <bit>
#include <cstdint>

#include "base/huge_pages.h"

namespace streamfs::ssd {

class Bitmap {
 public:
  explicit Bitmap(uint64_t bits) : words_((bits + 63) / 64) {}
  bool test(uint64_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void prefetch(uint64_t i) const { __builtin_prefetch(&words_[i / 64], 1); }
  void set(uint64_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void clear(uint64_t i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }

  // Calls visit(i) for every set bit of [first, first + count).
  template <typename Visit>
  void for_each_set(uint64_t first, uint64_t count, Visit visit) const {
    const uint64_t end = first + count;
    for (uint64_t word = first / 64; word * 64 < end; ++word) {
      uint64_t bits = words_[word];
      if (word == first / 64) bits &= ~uint64_t{0} << (first % 64);
      if (end - word * 64 < 64) bits &= (uint64_t{1} << (end % 64)) - 1;
      for (; bits != 0; bits &= bits - 1)
        visit(word * 64 + static_cast<uint64_t>(std::countr_zero(bits)));
    }
  }

 private:
  HugeVector<uint64_t> words_;
};

}  // namespace streamfs::ssd
