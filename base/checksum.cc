#include "base/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/assert.h"
#include "base/types.h"

namespace streamfs {

uint32_t crc32c(ConstBytes bytes, uint32_t seed) {
  // ISA-L takes a mutable pointer and an int length, and neither inverts before nor after.
  uint32_t crc = ~seed;
  while (!bytes.empty()) {
    const size_t step = std::min<size_t>(bytes.size(), size_t{1} << 30);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(step), crc);
    bytes = bytes.subspan(step);
  }
  return ~crc;
}

// The processor fetches ahead within a page of 4 KiB, not into the next one.
void crc32c_each(ConstBytes bytes, std::span<uint32_t> crcs) {
  constexpr size_t kCacheLine = 64;
  const size_t size = crcs.empty() ? 0 : bytes.size() / crcs.size();
  SFS_ASSERT(size * crcs.size() == bytes.size());
  for (size_t i = 0; i < crcs.size(); ++i) {
    if (i + 1 < crcs.size()) {
      const ConstBytes next = bytes.subspan((i + 1) * size, size);
      for (size_t at = 0; at < size; at += kCacheLine) __builtin_prefetch(next.data() + at);
    }
    crcs[i] = crc32c(bytes.subspan(i * size, size));
  }
}

uint32_t copy_crc32c(Bytes to, ConstBytes from, uint32_t seed) {
  SFS_ASSERT(to.size() == from.size());
  constexpr size_t kStep = 4096;  // The copied bytes are still in L1 when they are summed.
  for (size_t at = 0; at < from.size(); at += kStep) {
    const size_t size = std::min(kStep, from.size() - at);
    std::memcpy(to.data() + at, from.data() + at, size);
    seed = crc32c(to.subspan(at, size), seed);
  }
  return seed;
}

}  // namespace streamfs
