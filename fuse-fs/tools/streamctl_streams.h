// streamctl streams: the vStreams of a mount, with their lifetimes and pStreams.
// Thread safety: pure functions but for stdout.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "fuse-fs/tools/command_set.h"
#include "fuse-fs/tools/listing.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

// Returns the table of an answer to {"op": "streams"}.
std::string streams_text(const nlohmann::json& streams, const ListingOptions& options,
                         const Style& style);
// Returns the counts and the map of an answer to {"op": "chunks"}.
std::string chunks_text(const nlohmann::json& chunks, const Style& style);
void declare_streams(CLI::App& app, CommandSet& commands);

}  // namespace streamfs::tools
