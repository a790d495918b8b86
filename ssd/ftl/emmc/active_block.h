// The firmware's record of an active block, in RAM and, byte for byte, in the global context:
// "block index, page offset, program level etc., total of 27 bytes" (Vishwakarma 2019). The
// records of four streams take 108 bytes. The source names three fields; the others are our choice.
// Thread safety: values. Numbers are little-endian and unaligned.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ssd/ftl/emmc/interface.h"

namespace streamfs::ssd::emmc {

static_assert(std::endian::native == std::endian::little);

// Unaligned, so that a record has no padding.
template <typename Value>
struct Packed {
  std::array<std::byte, sizeof(Value)> bytes{};
  void operator=(Value value) { std::memcpy(bytes.data(), &value, sizeof(value)); }
  operator Value() const {  // NOLINT(google-explicit-constructor): used like a Value
    Value value;
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
};

struct ActiveBlock {
  Packed<uint32_t> block;           // UINT32_MAX: none
  Packed<uint32_t> page_offset;     // of the first page that is not programmed
  Packed<uint8_t> program_level;    // bits of its cells that a program writes
  Packed<uint8_t> stream;           // its frontier
  Packed<uint8_t> transfer_buffer;  // holds its data in transit
  Packed<uint64_t> sequence;        // of the last page or trim of the device
  Packed<uint32_t> erases;          // of this block
  Packed<uint32_t> buffered_pages;  // not yet counted in page_offset
};
static_assert(sizeof(ActiveBlock) == 27 && alignof(ActiveBlock) == 1);
static_assert(sizeof(std::array<ActiveBlock, kStreams>) == 108);

}  // namespace streamfs::ssd::emmc
