// streamctl export: copies files out of an unmounted filesystem, without FUSE. Only reads it.
// Thread safety: one call at a time.
#pragma once

#include <CLI/CLI.hpp>

#include "fuse-fs/tools/command_set.h"

namespace streamfs::tools {

void declare_export(CLI::App& app, CommandSet& commands);

}  // namespace streamfs::tools
