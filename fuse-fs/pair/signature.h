// Tells what a device already holds: a signature that libblkid knows, or one of streamfs.
// Thread safety: any thread; the devices are only read.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "fuse-fs/blockdev/device.h"
#include "pmem/region.h"

namespace streamfs::pair {

// Returns a phrase such as "a filesystem or volume of type ext4" or "a streamfs data device";
// nullopt if no signature is found. If a file or META has no signature, but anything except zeroes
// in its first MiB, returns "data". Errors: EIO.
Result<std::optional<std::string>> signature_of(blockdev::Device& device);
Result<std::optional<std::string>> signature_of(const pmem::Region& region);

}  // namespace streamfs::pair
