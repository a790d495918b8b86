// Formats sizes for people, in powers of 1,024.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace streamfs {

// "1023 bytes", "1.5 GiB".
std::string human_bytes(uint64_t bytes);

// Formats two sizes. If they differ but round to the same text, both are given in bytes.
struct HumanPair {
  std::string first, second;
};
HumanPair human_pair(uint64_t first, uint64_t second);

}  // namespace streamfs
