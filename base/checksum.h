// CRC32C (Castagnoli, reflected, init and final xor 0xffffffff), by ISA-L.
// crc32c(b, crc32c(a)) == crc32c(a ∥ b). Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"

namespace streamfs {

uint32_t crc32c(ConstBytes bytes, uint32_t seed = 0);

// Of each of as many equal parts as there is room for; faster than one by one of bytes that no
// cache holds, such as a device has just written.
void crc32c_each(ConstBytes bytes, std::span<uint32_t> crcs);

// Copies `from` into `to` (same length) and returns crc32c(from): the one copy of the write path.
uint32_t copy_crc32c(Bytes to, ConstBytes from, uint32_t seed = 0);

}  // namespace streamfs
