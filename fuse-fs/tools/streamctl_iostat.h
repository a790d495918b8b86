// streamctl iostat MOUNTPOINT [SECONDS [COUNT]]: prints a line about I/O for each interval.
// Thread safety: one call at a time.
#pragma once

#include <CLI/CLI.hpp>

#include "fuse-fs/tools/command_set.h"

namespace streamfs::tools {

void declare_iostat(CLI::App& app, CommandSet& commands);

}  // namespace streamfs::tools
