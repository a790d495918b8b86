#include "base/human_bytes.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace streamfs {

std::string human_bytes(uint64_t bytes) {
  constexpr std::array<const char*, 6> kNames = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kNames.size()) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, kNames[unit]);
}

HumanPair human_pair(uint64_t first, uint64_t second) {
  HumanPair out{human_bytes(first), human_bytes(second)};
  if (out.first == out.second && first != second)
    out = {fmt::format("{} bytes", first), fmt::format("{} bytes", second)};
  return out;
}

}  // namespace streamfs
