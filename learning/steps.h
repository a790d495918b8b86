// Quantises ages, lifetimes and lengths to half steps of log2.
// Thread safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>

namespace streamfs::learning {

// 2 · log2(value + 1), rounded down: 0, 2, 3, 4, 4, 5, ... At most 127.
constexpr uint8_t half_log2(uint64_t value) {
  const uint64_t up = value + 1 == 0 ? value : value + 1;
  const auto whole = static_cast<uint32_t>(std::bit_width(up)) - 1;
  // Is the rest at least √2? Its square is 2^63 or more, held as a 32-bit fraction.
  const uint64_t rest = whole >= 31 ? up >> (whole - 31) : up << (31 - whole);
  const bool half = rest * rest >= uint64_t{1} << 63;
  return static_cast<uint8_t>(2 * whole + (half ? 1 : 0));
}

// Returns the class, 1 to 128, of a request's place in its file; 0 stands for an unknown place.
// `pages`: the number of pages of the file that lie before the request's first page.
constexpr uint8_t file_place(uint64_t pages) {
  return static_cast<uint8_t>(1 + half_log2(pages));
}

}  // namespace streamfs::learning
