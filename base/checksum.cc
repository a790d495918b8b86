#include "base/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

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
