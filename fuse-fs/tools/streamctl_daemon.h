// Commands of streamctl that the daemon's program runs, because it has the models and the plots.
// Thread safety: one thread.
#pragma once

#include "base/result.h"

namespace streamfs::tools {

struct DaemonCommand {
  const char* name;
  const char* help;
};
inline constexpr DaemonCommand kDaemonCommands[] = {
    {"advise", "Predict the savings of streams for writes to DEVICE, or for TRACE"},
    {"metrics", "Serve metrics of mounted filesystems to Prometheus"},
    {"report", "Write one page about MOUNTPOINT, with plots: -o FILE.html"}};

// If argv[1] is one of these commands, becomes `classifierd argv[1] ...` by exec, which has a
// --help of its own, and does not return. Otherwise does nothing. Errors: those of exec(3); ENOENT,
// classifierd is not installed.
Result<void> become_daemon_command(int argc, char** argv);

}  // namespace streamfs::tools
