// A disk with a volatile write cache whose power can be cut.
//
//   write() ──► cache ──flush()──► image
//                 └─cut(): a random part reaches the image, in sectors; then nothing works
//
// Thread safety: one thread. After a crash of this process the image has what was flushed.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

namespace powercut {

struct Faults {
  uint64_t sector_bytes = 512;  // a cut tears writes at multiples of this
  uint64_t fail_one_in = 0;     // writes that answer EIO and store a part; 0: none
  bool lie = false;             // flushes answer that they are done, and are not
  uint64_t seed = 1;
};

class Disk {
 public:
  // `image` is an open file of `size` bytes; the disk does not close it.
  Disk(int image, uint64_t size, const Faults& faults)
      : image_(image), size_(size), faults_(faults), random_(faults.seed) {}

  uint64_t size() const { return size_; }
  // All return what a FUSE operation does: bytes or 0, or a negative errno.
  int read(std::span<char> out, uint64_t offset);
  int write(std::span<const char> in, uint64_t offset);
  int discard(uint64_t offset, uint64_t length);  // reads as zeroes afterwards
  int flush();
  // Chooses what of the cache survives, by `seed`. Every later call answers EIO.
  int cut(uint64_t seed);
  uint64_t flushes() const { return flushes_; }
  uint64_t cached_writes() const { return cached_.size(); }

 private:
  static constexpr uint64_t kBlock = 4096;
  using Block = std::array<char, kBlock>;
  struct Write {
    uint64_t offset, length;
    std::vector<char> bytes;  // none: a discard
  };
  bool fits(uint64_t offset, uint64_t length) const {
    return offset <= size_ && length <= size_ - offset;
  }
  Block& block(uint64_t number);
  void show(const Write& write);
  void keep(Write write);
  void store_part(Write write);
  int store(const Write& write, uint64_t from, uint64_t length) const;
  void survive(const Write& write, unsigned how, bool& going);

  const int image_;
  const uint64_t size_;
  const Faults faults_;
  std::mt19937_64 random_;
  bool cut_ = false;
  uint64_t flushes_ = 0;
  std::vector<Write> cached_;                    // in their order
  std::unordered_map<uint64_t, Block> current_;  // blocks that differ from the image
};

}  // namespace powercut
