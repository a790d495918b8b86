// A fuzzer's input: damage to an image, then operations on it. Its shapes are few and fixed, so
// that a mutation changes one thing and a crash can be read.
//
//   byte 0       flags (each target says which)
//   byte 1       number of items
//   12 bytes     an item: kind, argument, where (16 bits), value (64 bits)
//   4 bytes      an operation: what, on which, on which other, how; as many as there are
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace streamfs::fuzz {

struct Item {
  uint8_t kind = 0;
  uint8_t argument = 0;
  uint16_t where = 0;
  uint64_t value = 0;
};
inline constexpr size_t kItemBytes = 12;
inline constexpr size_t kItemsMax = 16;

struct Operation {
  uint8_t what = 0, which = 0, other = 0, how = 0;
};
static_assert(sizeof(Operation) == 4);
inline constexpr size_t kOperationsMax = 16;

struct Input {
  uint8_t flags = 0;
  std::vector<Item> items;
  std::vector<Operation> operations;
};
inline constexpr size_t kInputBytesMax =
    2 + kItemsMax * kItemBytes + kOperationsMax * sizeof(Operation);

// Any bytes are an input; what is missing is zero or not there.
Input parse(std::span<const uint8_t> bytes);
std::vector<uint8_t> to_bytes(const Input& input);

}  // namespace streamfs::fuzz
