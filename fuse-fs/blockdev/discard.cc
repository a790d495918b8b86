#include "fuse-fs/blockdev/discard.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/types.h"

namespace streamfs::blockdev {
namespace {

uint64_t number_in(const std::filesystem::path& file) {
  std::ifstream input(file);
  uint64_t value = 0;
  return input >> value ? value : 0;
}

}  // namespace

DiscardUnits discard_units(const std::filesystem::path& directory) {
  std::error_code failed;
  const bool part = std::filesystem::exists(directory / "partition", failed);
  const uint64_t unit =
      number_in(directory / (part ? "../queue/discard_granularity" : "queue/discard_granularity"));
  if (unit == 0 || unit % kBlockSize != 0) return {};
  const uint64_t offset = number_in(directory / "discard_alignment") % unit;
  return {unit, offset % kBlockSize == 0 ? offset : 0};
}

ByteRange whole_units(ByteRange range, const DiscardUnits& units) {
  const auto up = [&](uint64_t at) {
    if (at <= units.offset_bytes) return units.offset_bytes;
    return units.offset_bytes + round_up(at - units.offset_bytes, units.unit_bytes);
  };
  const uint64_t first = up(range.offset), limit = range.offset + range.size;
  if (limit <= first) return {range.offset, 0};
  return {first, round_down(limit - first, units.unit_bytes)};
}

}  // namespace streamfs::blockdev
