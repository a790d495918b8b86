// streamctl tune DATA: gives an unmounted filesystem an intent log, or takes it away (tune_pair.h).
// Thread safety: one call at a time.
#pragma once

#include <CLI/CLI.hpp>

#include "fuse-fs/tools/command_set.h"

namespace streamfs::tools {

void declare_tune(CLI::App& app, CommandSet& commands);

}  // namespace streamfs::tools
