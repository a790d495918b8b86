// streamctl device DATA: what a data device that is not mounted is and can do.
// Thread safety: one call at a time.
#pragma once

#include <string>

#include "base/result.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

// Whether the word names a device rather than a place in a mounted filesystem: "emu:PATH" and the
// like, a block device, or a character device.
bool names_data(const std::string& word);

struct DeviceArguments {
  std::string data;
  bool probe = false;  // write each pStream once: see blockdev/describe.h
  Style style;
};
// Every NVMe device of this machine. Errors: those of reading /sys.
Result<void> list_devices(const Style& style);

// Prints it. Errors: those of open_device.
Result<void> describe_data(const DeviceArguments& arguments);

}  // namespace streamfs::tools
