// The life of the mount program, from both devices to a clean unmount.
//
//   open devices ► mount ► answer requests ► (unmounted, or a signal) ► drain, mark clean
//
// Thread safety: once a process, on its first thread. Crash: what data::Filesystem leaves.
#pragma once

#include "fuse-fs/tools/launch.h"
#include "fuse-fs/tools/mount_options.h"

namespace streamfs::tools {

// Returns the exit code; failures are told on stderr (or the log, once a daemon).
int run_mount(const MountCommand& command, Launch launch);

}  // namespace streamfs::tools
