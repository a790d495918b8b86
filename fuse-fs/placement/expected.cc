#include "fuse-fs/placement/expected.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/types.h"

namespace streamfs::placement {
namespace {

constexpr std::array<std::string_view, kLifeMost + 1> kHints{
    "", "", "rwh-short", "rwh-medium", "rwh-long", "rwh-extreme"};
constexpr std::array<double, 6> kShares{0, 0, 1.0 / 64, 1.0 / 8, 1, 8};  // of the device
constexpr std::array<std::string_view, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
constexpr std::string_view kLife = "life-";
constexpr double kPagesMost = 0x1p50;  // users choose names freely; bytes still fit 63 bits

}  // namespace

std::string_view name_of_life(uint32_t life) {
  return life > kLifeMost ? std::string_view() : kHints[life];
}

bool is_name_of_life(std::string_view name) {
  return !name.empty() && std::ranges::find(kHints, name) != kHints.end();
}

std::optional<double> pages_of_life(uint32_t life, uint64_t capacity_blocks) {
  if (life >= kShares.size() || kShares[life] == 0) return std::nullopt;
  return std::max(1.0, kShares[life] * static_cast<double>(capacity_blocks));
}

std::optional<double> pages_of_name(std::string_view name, uint64_t capacity_blocks,
                                    double ms_per_page) {
  if (is_name_of_life(name)) {
    const auto* const hint = std::ranges::find(kHints, name);
    return pages_of_life(static_cast<uint32_t>(hint - kHints.begin()), capacity_blocks);
  }
  if (!name.starts_with(kLife)) return std::nullopt;
  name.remove_prefix(kLife.size());
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), count);
  if (error != std::errc{} || count == 0) return std::nullopt;
  const std::string_view unit = name.substr(static_cast<size_t>(end - name.data()));
  auto amount = static_cast<double>(count);
  if (unit == "s") {
    if (ms_per_page == 0) return std::nullopt;
    return std::clamp(amount * 1000 / ms_per_page, 1.0, kPagesMost);
  }
  const auto* const known = std::ranges::find(kUnits, unit);
  if (known == kUnits.end()) return std::nullopt;
  for (auto power = known - kUnits.begin(); power > 0; --power) amount *= 1024;
  return std::clamp(amount / kBlockSize, 1.0, kPagesMost);
}

bool says_seconds(std::string_view name) {
  return pages_of_name(name, 1, 0) != pages_of_name(name, 1, 1);
}

}  // namespace streamfs::placement
