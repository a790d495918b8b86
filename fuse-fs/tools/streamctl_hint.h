// streamctl hint: shows and sets labels of files and directories, as lsattr(1) and chattr(1) do
// with attributes.
// Thread safety: once in a process.
// After a crash: labels that were set are kept, as the filesystem's metadata is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

struct HintArguments {
  std::vector<std::string> paths;
  // Without any of the next three, labels are shown. If several are set, `clear` wins, then
  // `name`.
  std::string name;     // label with the vStream of this name
  uint32_t number = 0;  // label with the vStream of this number
  bool clear = false;   // remove labels
  bool recursive = false;
  bool list = false;       // list the content of directories; else the paths themselves
  bool all = false;        // in a listing: names that begin with a dot, too
  bool directory = false;  // in a listing: directories themselves, not their content
  Style style;             // JSON has an object in each line
};

// Goes on after errors. The last error is returned, the others are printed on stderr.
Result<void> hint(const HintArguments& arguments);

}  // namespace streamfs::tools
