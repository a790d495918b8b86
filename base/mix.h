// A bijective mixing function of 64 bits, for hashes and repeatable pseudo-random choices.
// Thread safety: a pure function.
#pragma once

#include <cstdint>

namespace streamfs {

// splitmix64's finalizer (Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators).
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace streamfs
