// CRC32C (Castagnoli, reflected, init and final xor 0xffffffff), by ISA-L.
// crc32c(b, crc32c(a)) == crc32c(a ∥ b). Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"

namespace streamfs {

uint32_t crc32c(ConstBytes bytes, uint32_t seed = 0);

// Stores in crcs[i] the CRC32C of part i of `bytes`, which are cut into crcs.size() equal parts.
// Prefetches, and so is faster than separate calls on bytes that are not in a cache, such as data
// that a device has just transferred. Requires: bytes.size() is a multiple of crcs.size().
void crc32c_each(ConstBytes bytes, std::span<uint32_t> crcs);

// Copies `from` into `to` and returns crc32c(from, seed). Requires: equal lengths.
uint32_t copy_crc32c(Bytes to, ConstBytes from, uint32_t seed = 0);

}  // namespace streamfs
