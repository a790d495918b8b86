// The life of the mount program, from both devices to a clean unmount.
//
//   open devices ► mount ► answer requests ► (unmounted, or a signal) ► drain, mark clean
//
// Thread safety: once in a process, on its first thread and before any other thread runs, because
// it sets the process's signal mask and handlers. After a crash: see data::Filesystem.
#pragma once

#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/mount_options.h"

namespace streamfs::tools {

// Returns the exit code. Failures are reported on stderr, by a daemon in the log.
int run_mount(const MountCommand& command, Launch launch);

}  // namespace streamfs::tools
