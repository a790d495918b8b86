// Changes the flags of a mount.
// Thread safety: any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace streamfs::tools {

// Sets the kernel's flags of a mount, the only options that can change while it is mounted: ro,
// nosuid, nodev, noexec and noatime. A flag that `options` does not name is cleared. The exception
// is noatime: mount(2) keeps it, so it can be set here, but not cleared. If `options` names a flag
// and its opposite (rw, suid, ...), the last of them decides. Other options are ignored, and stay
// as they are. Errors: those of mount(2).
Result<void> remount(const std::string& mountpoint, const std::vector<std::string>& options);

}  // namespace streamfs::tools
