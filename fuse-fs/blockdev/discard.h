// What of a freed range is worth a discard: whole units of what a block device frees. Of a unit in
// part it frees nothing.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <filesystem>

namespace streamfs::blockdev {

struct DiscardUnits {
  uint64_t unit_bytes = 4096;
  uint64_t offset_bytes = 0;  // where the first unit begins: of a partition, any place
};

// Of the device's folder in /sys: queue/discard_granularity (of a partition, its disk's) and
// discard_alignment. Whole blocks of 4 KiB: what is no multiple of them is taken for none.
DiscardUnits discard_units(const std::filesystem::path& directory);

struct ByteRange {
  uint64_t offset = 0, size = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
// The whole units inside; size 0 where there are none.
ByteRange whole_units(ByteRange range, const DiscardUnits& units);

}  // namespace streamfs::blockdev
