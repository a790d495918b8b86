// Cuts a freed range to the whole units that a block device can discard. A device frees nothing of
// a unit that is only partly in the range.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <filesystem>

namespace streamfs::blockdev {

struct DiscardUnits {
  uint64_t unit_bytes = 4096;
  uint64_t offset_bytes = 0;  // of the first unit; a partition may begin inside a unit
};

// Reads queue/discard_granularity (for a partition, that of its disk) and discard_alignment in the
// device's folder of /sys. If the granularity is missing or no multiple of 4 KiB, the result is the
// default, units of 4 KiB. An alignment that is no multiple of 4 KiB counts as 0.
DiscardUnits discard_units(const std::filesystem::path& directory);

struct ByteRange {
  uint64_t offset = 0, size = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
// Returns the whole units inside `range`; size 0 if there are none.
ByteRange whole_units(ByteRange range, const DiscardUnits& units);

}  // namespace streamfs::blockdev
