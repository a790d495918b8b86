// Finds the holder of a file's lock or of a mount, for messages: the process, and its mount
// namespace if that differs from the caller's.
// Thread safety: reads /proc only. Crash: nothing is kept.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>

namespace streamfs {

// "process 12 (streamfs)", or "process 12 (streamfs) in mount namespace mnt:[4026532758]".
std::string process_text(pid_t process);
// Returns the process that holds an flock(2) on this file; "another process" if /proc does not
// tell.
std::string lock_holder(int fd);
// Returns a process that sees the mount with device number 0:minor, and the mountpoint there:
// "process 12 (sh) at /mnt". Returns "" if /proc shows none.
std::string mount_holder(unsigned minor);

}  // namespace streamfs
