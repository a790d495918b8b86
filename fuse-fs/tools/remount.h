// Changing the flags of what is mounted.
// Thread safety: any thread. Crash: it is done or not.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace streamfs::tools {

// Only the kernel's own flags can change while mounted: ro, rw, suid, dev, noexec, noatime and
// their opposites; other options stay what they are. Errors: of mount(2).
Result<void> remount(const std::string& mountpoint, const std::vector<std::string>& options);

}  // namespace streamfs::tools
