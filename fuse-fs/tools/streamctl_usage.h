// streamctl usage MOUNTPOINT: tells how the space of DATA and META is used.
// Thread safety: one call at a time; usage_json() is a pure function.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fuse-fs/tools/command_set.h"

namespace streamfs::tools {

void declare_usage(CLI::App& app, CommandSet& commands);

// Computes the usage from the mount's answers to "status" and "streams". The parts of DATA add up
// to its size, and so do those of META.
nlohmann::json usage_json(const nlohmann::json& status, const nlohmann::json& streams);

}  // namespace streamfs::tools
