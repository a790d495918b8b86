// streamctl trim, maintain, prepare-poweroff and watch-suspend: long work on a mounted filesystem,
// asked for slice by slice, so that nothing waits for it. Thread safety: once a process. Crash:
// what was done is done.
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
// Until the connection to logind is gone; tells systemd when it holds the inhibitor.
Result<void> watch_suspend(const MaintenanceArguments& arguments);
Result<void> trim(const MaintenanceArguments& arguments);

}  // namespace streamfs::tools
