// streamctl top MOUNTPOINT: shows WAF and the rates of streams live on a terminal. Without a
// terminal, or with --batch, it prints frame after frame as text.
// Thread safety: one call at a time; top_frame() is a pure function.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "fuse-fs/tools/command_set.h"
#include "fuse-fs/tools/listing.h"
#include "fuse-fs/tools/output.h"
#include "fuse-fs/tools/terminal.h"

namespace streamfs::tools {

void declare_top(CLI::App& app, CommandSet& commands);

// The mount's answers to "status" and "streams" at one time.
struct TopSample {
  nlohmann::json status, streams;
};
// Returns the lines of one frame. The busiest vStreams come first, unless `vstreams` names another
// column to sort by. Requires: `seconds` is more than 0.
std::vector<Terminal::Line> top_frame(const TopSample& before, const TopSample& after,
                                      double seconds, const ListingOptions& vstreams,
                                      const Style& style);

}  // namespace streamfs::tools
