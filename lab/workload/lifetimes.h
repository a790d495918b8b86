// Results of the first of two passes over a stream: the lifetime of each write, in a file, and the
// distribution of lifetimes, in memory. A lifetime is the host pages written from a page's write to
// its overwrite or trim.
// Thread safety: none. After a crash: the file has no name and is gone.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"

namespace streamfs::lab {

inline constexpr uint64_t kNever = UINT64_MAX;  // the page does not die within the stream

// A histogram of lifetimes, which are exact below 128 and exact to 1/64 above.
class LifetimeHistogram {
 public:
  void add(uint64_t life, uint64_t times = 1) {
    if (buckets_.empty()) buckets_.resize(kBuckets);
    buckets_[bucket_of(life)] += times;
    total_ += times;
  }
  bool empty() const { return total_ == 0; }
  uint64_t total() const { return total_; }

  // Returns the lifetime at index `place` of all lifetimes in ascending order, rounded down to its
  // bucket; kNever for a write that does not die.
  uint64_t at(uint64_t place) const {
    for (size_t i = 0; i < buckets_.size(); ++i) {
      if (place < buckets_[i]) return i + 1 == kBuckets ? kNever : floor_of(i);
      place -= buckets_[i];
    }
    return kNever;
  }

 private:
  static constexpr unsigned kBits = 6;
  static constexpr size_t kBuckets = (64 - kBits) * (size_t{1} << kBits) + (1u << kBits) + 1;

  static size_t bucket_of(uint64_t life) {
    if (life == kNever) return kBuckets - 1;
    if (life < (2u << kBits)) return life;
    const auto shift = static_cast<unsigned>(std::bit_width(life)) - kBits - 1;
    return (size_t{shift} << kBits) + (life >> shift);
  }
  static uint64_t floor_of(size_t bucket) {
    if (bucket < (2u << kBits)) return bucket;
    const size_t shift = (bucket >> kBits) - 1;
    return ((bucket & ((1u << kBits) - 1)) + (1u << kBits)) << shift;
  }

  std::vector<uint64_t> buckets_;
  uint64_t total_ = 0;
};

// The lifetime of each write of a stream, 4 bytes each, in a mapped and unlinked file in $TMPDIR
// (or /var/tmp); the kernel keeps as much of it in memory as fits.
class LifetimeFile {
 public:
  LifetimeFile() = default;
  // Reserves the space of the file. Requires: writes > 0. Errors: those of the filesystem.
  static Result<LifetimeFile> create(uint64_t writes);
  ~LifetimeFile();
  LifetimeFile(LifetimeFile&& other) noexcept
      : lives_(std::exchange(other.lives_, nullptr)), writes_(std::exchange(other.writes_, 0)) {}
  LifetimeFile& operator=(LifetimeFile&& other) noexcept {
    std::swap(lives_, other.lives_);
    std::swap(writes_, other.writes_);
    return *this;
  }

  bool empty() const { return lives_ == nullptr; }
  uint64_t writes() const { return writes_; }
  // Stores a lifetime; 16 TiB of pages or more counts as "never". Requires: life > 0.
  void set(uint64_t write, uint64_t life) {
    lives_[write] = life < UINT32_MAX ? static_cast<uint32_t>(life) : 0;
  }
  // Returns the clock at which this write dies, or kNever.
  uint64_t death_of(uint64_t write) const {
    return lives_[write] == 0 ? kNever : write + lives_[write];
  }

 private:
  LifetimeFile(uint32_t* lives, uint64_t writes) : lives_(lives), writes_(writes) {}

  uint32_t* lives_ = nullptr;  // by write; 0: never
  uint64_t writes_ = 0;
};

}  // namespace streamfs::lab
