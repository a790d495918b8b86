// What is wrong with a file that streamfs@.service reads (/etc/streamfs/PATH.conf), each problem
// with its line.
// Thread safety: reads files only. Crash: nothing is kept.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace streamfs::tools {

// "FILE:LINE: what is wrong" each; empty where nothing is. A path that does not exist is no mistake
// of the file: devices come later. Errors: of opening it.
Result<std::vector<std::string>> problems_in(const std::string& file);

// streamfs --check-config FILE: prints them; the exit code.
int check_config(const std::string& file);

}  // namespace streamfs::tools
