// What a device holds already, as libblkid names it, or as a streamfs.
// Thread safety: pure functions; the devices are only read.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "pmem/region.h"

namespace streamfs::pair {

// "an ext4 filesystem", "a gpt partition table", "a streamfs data device"; nothing if empty.
// Of a file, and of META, anything but zeroes in the first megabyte counts: "data".
Result<std::optional<std::string>> signature_of(blockdev::Device& device);
Result<std::optional<std::string>> signature_of(const pmem::Region& region);

}  // namespace streamfs::pair
