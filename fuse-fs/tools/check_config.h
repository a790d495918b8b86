// Checks a file that streamfs@.service reads (/etc/streamfs/PATH.conf), and gives each problem with
// its line.
// Thread safety: reads files only.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace streamfs::tools {

// Returns a text "FILE:LINE: problem" for each problem, and "FILE: no DATA=" (or META=) for a line
// that is missing. A path that does not exist is no problem of the file, because devices may appear
// later. Errors: those of opening the file.
Result<std::vector<std::string>> problems_in(const std::string& file);

// streamfs --check-config FILE: prints the problems on stderr. Returns the exit code.
int check_config(const std::string& file);

}  // namespace streamfs::tools
