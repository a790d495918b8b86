// Histograms with two significant digits, for values from 0 to 2^37: times in nanoseconds up to two
// minutes, and sizes in bytes.
//
// The buckets are those of HdrHistogram: each power of two is divided into 64 buckets of equal
// width. Each value from 2 to 128 has its own bucket; 0 and 1 share one. The middle of a bucket
// differs from every value in the bucket, from 1 to 2^37, by less than 1/128 (0.8 %) of the value,
// so a figure that is read from a bucket's middle has two significant digits. 128 buckets would
// halve the error and double the memory.
//
// A bucket includes its upper bound and excludes its lower one. So a request of 4096 bytes belongs
// to "at most 4096", and both 2^n and 1000 · 2^n are upper bounds: a histogram with powers of two
// of bytes, nanoseconds or microseconds is an exact sum of these buckets.
//
// Thread safety: values and pure functions; base/thread_histograms.h counts in many threads.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace streamfs {

struct LogBuckets {
  static constexpr size_t kPerOctave = 64;
  static constexpr size_t kOctaves = 32;  // the first has the values up to 64
  static constexpr size_t kCount = kOctaves * kPerOctave;

  // Returns the bucket of `value`. The first bucket has 0 too, the last one all values beyond it.
  static constexpr size_t of(uint64_t value) {
    const uint64_t last = value - (value == 0 ? 0 : 1);
    const auto shift = static_cast<unsigned>(std::bit_width(last | kPerOctave)) - kDigits;
    return std::min(shift * kPerOctave + static_cast<size_t>(last >> shift), kCount - 1);
  }
  // The values in a bucket are more than above() and at most up_to().
  static constexpr uint64_t above(size_t bucket) {
    return (bucket - shift_of(bucket) * kPerOctave) << shift_of(bucket);
  }
  static constexpr uint64_t up_to(size_t bucket) {
    return above(bucket) + (uint64_t{1} << shift_of(bucket));
  }
  static constexpr double middle(size_t bucket) {
    return static_cast<double>(above(bucket) + 1 + up_to(bucket)) / 2;
  }

 private:
  static constexpr unsigned kDigits = std::bit_width(kPerOctave);
  // Returns the binary logarithm of the bucket's width.
  static constexpr size_t shift_of(size_t bucket) {
    const size_t octave = bucket / kPerOctave;
    return octave == 0 ? 0 : octave - 1;
  }
};

struct LogHistogram {
  std::array<uint64_t, LogBuckets::kCount> counts{};
  uint64_t sum = 0;  // of the values

  uint64_t count() const;
  // Returns the middle of the bucket that has the value at rank ceil(share · count()); 0 if the
  // histogram is empty. quantile(1) is the middle of the highest bucket in use. Requires: 0 < share
  // ≤ 1.
  double quantile(double share) const;
  // Returns the values that were added since the histogram was `before`. A bucket that has fewer
  // values than before counts 0.
  LogHistogram since(const LogHistogram& before) const;
};

}  // namespace streamfs
