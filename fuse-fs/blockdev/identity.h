// The identity of a file or block device, which distinguishes it from another one at the same path.
// Thread safety: pure functions over /sys.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace streamfs::blockdev {

// Returns the identity, which is never empty. A block device has its world-wide name, else its
// serial number, else its backing file (a loop device), else major:minor. A partition has its
// disk's and its own number. A file has its filesystem's id and its inode number.
std::string identity_of(int fd, const struct stat& st);

// Returns the device's directory in /sys; a partition has its own.
std::filesystem::path sys_directory(dev_t device);

// Returns a number from the queue directory in /sys of the device or its disk; 0 if there is none.
uint64_t queue_attribute(dev_t device, const char* name);

// Returns whether the device in this directory of /sys has no volatile write cache; false if the
// kernel does not say.
bool writes_through(const std::filesystem::path& directory);

}  // namespace streamfs::blockdev
