// Reads and writes little-endian fields at byte offsets. A structure describes its fields once, in
// each_field() (structures.h), which is called with a Reader or a Writer.
// Thread safety: pure functions over the caller's bytes.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/assert.h"
#include "base/types.h"

namespace streamfs::nvme {

template <std::unsigned_integral T>
T load(ConstBytes from, size_t at) {
  SFS_ASSERT(at + sizeof(T) <= from.size());
  uint64_t value = 0;
  for (size_t i = sizeof(T); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(from[at + i]);
  return static_cast<T>(value);
}

template <std::unsigned_integral T>
void store(Bytes to, size_t at, T value) {
  SFS_ASSERT(at + sizeof(T) <= to.size());
  for (size_t i = 0; i < sizeof(T); ++i)
    to[at + i] = static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i));
}

// A counter of 16 bytes. A value beyond 64 bits is read as the largest 64-bit number.
struct Wide {
  uint64_t value = 0;
};

struct Reader {
  ConstBytes from;
  template <std::unsigned_integral T>
  void operator()(size_t at, T& field) const {
    field = load<T>(from, at);
  }
  void operator()(size_t at, Wide& field) const {
    field.value = load<uint64_t>(from, at + 8) == 0 ? load<uint64_t>(from, at)
                                                    : std::numeric_limits<uint64_t>::max();
  }
  template <typename T, size_t count>
  void operator()(size_t at, std::array<T, count>& fields) const {
    for (size_t i = 0; i < count; ++i) (*this)(at + i * sizeof(T), fields[i]);
  }
};

struct Writer {
  Bytes to;
  template <std::unsigned_integral T>
  void operator()(size_t at, const T& field) const {
    store(to, at, field);
  }
  void operator()(size_t at, const Wide& field) const { store(to, at, field.value); }
  template <typename T, size_t count>
  void operator()(size_t at, const std::array<T, count>& fields) const {
    for (size_t i = 0; i < count; ++i) (*this)(at + i * sizeof(T), fields[i]);
  }
};

}  // namespace streamfs::nvme
