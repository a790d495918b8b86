// streamctl usage MOUNTPOINT: what takes up DATA and META.
// Thread safety: one call at a time; usage_json() is a pure function.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fuse-fs/tools/command_set.h"

namespace streamfs::tools {

void declare_usage(CLI::App& app, CommandSet& commands);

// From what the mount answers to "status" and "streams". DATA's parts add up to its size, META's to
// its own.
nlohmann::json usage_json(const nlohmann::json& status, const nlohmann::json& streams);

}  // namespace streamfs::tools
