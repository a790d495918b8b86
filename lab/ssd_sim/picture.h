// Pictures of results. matplotlib draws them, in the Python module streamfs_lab.pictures, which
// gets the results as JSON. Thread safety: one thread; draw() runs a process.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace streamfs::lab::ssd_sim {

// The pictures that a command line asks for; empty names ask for none.
struct PictureFiles {
  std::string png, svg;

  // Adds --png and --svg, which set the members: this object outlives the parse and does not move.
  void add_options(CLI::App& app);
  bool wanted() const { return !png.empty() || !svg.empty(); }
  // Draws `results` into each file, the PNG first. A file is written whole or not at all.
  // Errors: ENOPKG without matplotlib or streamfs_lab, with the command that helps; EIO if the
  // module fails; those of starting it and of the files.
  Result<void> draw(const nlohmann::json& results) const;
};

}  // namespace streamfs::lab::ssd_sim
