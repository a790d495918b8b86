// The stable name of a file or block device: what tells it from another one at the same path.
// Thread safety: pure functions over /sys.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace streamfs::blockdev {

// A block device by its world-wide name or serial number (a partition: with its number; a loop
// device: by its file), else by major:minor; a file by its filesystem's id and inode. Never empty.
std::string identity_of(int fd, const struct stat& st);

// The device's directory in /sys; of a partition, its own.
std::filesystem::path sys_directory(dev_t device);

// A number from the device's /sys/.../queue directory; 0 if it is not there.
uint64_t queue_attribute(dev_t device, const char* name);

// Whether the device in this directory of /sys has no cache that a flush would empty.
bool writes_through(const std::filesystem::path& directory);

}  // namespace streamfs::blockdev
