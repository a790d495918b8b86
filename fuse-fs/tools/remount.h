// Changes the flags of a mount.
// Thread safety: any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace streamfs::tools {

// Changes the kernel's own flags, which alone can change while mounted: ro, rw, suid, dev, noexec,
// noatime and their opposites. Other options stay as they are. Errors: those of mount(2).
Result<void> remount(const std::string& mountpoint, const std::vector<std::string>& options);

}  // namespace streamfs::tools
