// streamctl setup [MOUNTPOINT]: looks at the machine, proposes a streamfs for it, and sets it up
// once the user agrees.
// Thread safety: one thread.
// After a crash or a failed step: the steps before it are done and the others are not. The file in
// /etc/streamfs is there as a whole or not at all. A second run refuses the devices that hold a
// filesystem by then.
#pragma once

#include <CLI/CLI.hpp>

#include "fuse-fs/tools/command_set.h"

namespace streamfs::tools {

void declare_setup(CLI::App& app, CommandSet& commands);

}  // namespace streamfs::tools
