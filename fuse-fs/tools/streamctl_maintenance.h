// streamctl trim, maintain, prepare-poweroff and watch-suspend: long work on a mounted filesystem.
// It is requested slice by slice, so that nothing has to wait for it.
// Thread safety: once in a process. After a crash: finished slices stay done.
#pragma once

#include <string>

#include "base/result.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

struct MaintenanceArguments {
  std::string path;
  double seconds = 60;
  bool if_stopping = false;  // prepare_poweroff: only while systemd shuts the machine down
  Style style;
};

Result<void> maintain(const MaintenanceArguments& arguments);
Result<void> prepare_poweroff(const MaintenanceArguments& arguments);
// Runs until the connection to logind is gone. Tells systemd when it holds the inhibitor.
Result<void> watch_suspend(const MaintenanceArguments& arguments);
Result<void> trim(const MaintenanceArguments& arguments);

}  // namespace streamfs::tools
