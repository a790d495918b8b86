#include "tests/fuzz/input.h"

#include <algorithm>
#include <cstring>

namespace streamfs::fuzz {

Input parse(std::span<const uint8_t> bytes) {
  Input input;
  if (bytes.size() < 2) return input;
  input.flags = bytes[0];
  const size_t count = std::min<size_t>(bytes[1], kItemsMax);
  bytes = bytes.subspan(2);
  while (input.items.size() < count && bytes.size() >= kItemBytes) {
    Item item{bytes[0], bytes[1], 0, 0};
    std::memcpy(&item.where, &bytes[2], sizeof(item.where));
    std::memcpy(&item.value, &bytes[4], sizeof(item.value));
    input.items.push_back(item);
    bytes = bytes.subspan(kItemBytes);
  }
  while (input.operations.size() < kOperationsMax && bytes.size() >= sizeof(Operation)) {
    input.operations.push_back({bytes[0], bytes[1], bytes[2], bytes[3]});
    bytes = bytes.subspan(sizeof(Operation));
  }
  return input;
}

std::vector<uint8_t> to_bytes(const Input& input) {
  std::vector<uint8_t> bytes{input.flags, static_cast<uint8_t>(input.items.size())};
  for (const Item& item : input.items) {
    bytes.push_back(item.kind);
    bytes.push_back(item.argument);
    const size_t at = bytes.size();
    bytes.resize(at + sizeof(item.where) + sizeof(item.value));
    std::memcpy(&bytes[at], &item.where, sizeof(item.where));
    std::memcpy(&bytes[at + sizeof(item.where)], &item.value, sizeof(item.value));
  }
  for (const Operation& operation : input.operations) {
    for (const uint8_t byte : {operation.what, operation.which, operation.other, operation.how}) {
      bytes.push_back(byte);
    }
  }
  return bytes;
}

}  // namespace streamfs::fuzz
