// streamctl device DATA: describes a data device that is not mounted.
// Thread safety: one call at a time.
#pragma once

#include <string>

#include "base/result.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

// Returns whether the word names a device ("emu:PATH" and the like, a block or a character device)
// rather than a place in a mounted filesystem.
bool names_data(const std::string& word);

struct DeviceArguments {
  std::string data;
  bool probe = false;  // write each pStream once: see blockdev/describe.h
  Style style;
};
// Prints every NVMe device of this machine. Errors: those of libnvme.
Result<void> list_devices(const Style& style);

// Prints the description. The device is opened for reading, or for writing if `probe` is set.
// Errors: those of open_device() (EBUSY if it is mounted) and of probe_placement().
Result<void> describe_data(const DeviceArguments& arguments);

}  // namespace streamfs::tools
