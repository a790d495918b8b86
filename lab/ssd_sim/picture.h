// Pictures of results. matplotlib draws them, in the Python module streamfs_lab.pictures, which
// gets the results as JSON. Thread safety: pure functions.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace streamfs::lab::ssd_sim {

// The pictures that a command line asks for; empty names ask for none.
struct PictureFiles {
  std::string png, svg;

  void add_options(CLI::App& app);
  bool wanted() const { return !png.empty() || !svg.empty(); }
  // Draws `results` into each file. A file is written whole or not at all.
  // Errors: ENOPKG without matplotlib, with the command that helps; those of the files.
  Result<void> draw(const nlohmann::json& results) const;
};

}  // namespace streamfs::lab::ssd_sim
