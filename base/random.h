// Random numbers that are the same on every platform for the same seed. The standard library's
// distributions are not.
// Thread safety: none.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace streamfs {

// xoshiro256** (Blackman and Vigna 2018), seeded by splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      uint64_t z = seed += 0x9e3779b97f4a7c15;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
      z = (z ^ z >> 27) * 0x94d049bb133111eb;
      word = z ^ z >> 31;
    }
  }

  uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Returns a number of [0, bound). Its probability differs from 1 / bound by a share below
  // bound · 2^-32. 0 gives 0.
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>((next() >> 32) * bound >> 32); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)

 private:
  std::array<uint64_t, 4> state_{};
};

}  // namespace streamfs
