// streamctl trim, maintain, prepare-poweroff and watch-suspend: long work on a mounted filesystem.
// The client asks for it in slices of half a second, so that an unmount waits for one slice only.
//
// Thread safety: once in a process. After a crash: finished slices stay done.
#pragma once

#include <string>

#include "base/result.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

struct MaintenanceArguments {
  std::string path;
  double seconds = 60;       // the longest time of maintain() and prepare_poweroff()
  bool if_stopping = false;  // prepare_poweroff: only while systemd shuts the machine down
  Style style;
};

// Each prints a report. Errors: those of ControlClient, and those that the filesystem gives.
Result<void> maintain(const MaintenanceArguments& arguments);
Result<void> prepare_poweroff(const MaintenanceArguments& arguments);
// Does prepare_poweroff() for 2.5 s at most before each suspend, until the connection to the
// system's D-Bus is gone, which it returns as an error. Tells systemd when it first holds the
// inhibitor.
Result<void> watch_suspend(const MaintenanceArguments& arguments);
// Makes everything durable (sync), then trims all free space.
Result<void> trim(const MaintenanceArguments& arguments);

}  // namespace streamfs::tools
