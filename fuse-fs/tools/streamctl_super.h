// streamctl show-super DATA [--meta META]: prints the label and the superblock of an unmounted
// filesystem. Nothing is written.
// Thread safety: one call at a time.
#pragma once

#include <CLI/CLI.hpp>

#include "fuse-fs/tools/command_set.h"

namespace streamfs::tools {

void declare_show_super(CLI::App& app, CommandSet& commands);

}  // namespace streamfs::tools
