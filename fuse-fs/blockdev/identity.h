// The identity of a file or block device, which distinguishes it from another one at the same path.
// Thread safety: pure functions over /sys.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace streamfs::blockdev {

// Returns a block device's world-wide name or serial number (a partition's: with its number; a loop
// device's: its backing file), else major:minor; of a file, its filesystem's id and its inode
// number. Never empty.
std::string identity_of(int fd, const struct stat& st);

// Returns the device's directory in /sys; a partition has its own.
std::filesystem::path sys_directory(dev_t device);

// Returns a number from the queue directory in /sys of the device or its disk; 0 if there is none.
uint64_t queue_attribute(dev_t device, const char* name);

// Returns whether the device in this directory of /sys has no volatile write cache.
bool writes_through(const std::filesystem::path& directory);

}  // namespace streamfs::blockdev
