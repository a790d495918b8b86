// streamctl hint: labels of files and directories, shown and said as lsattr(1) and chattr(1) do
// with attributes. Thread safety: once a process. Crash: what was labelled by then stays so, as far
// as the filesystem's metadata does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

struct HintArguments {
  std::vector<std::string> paths;
  std::string name;     // a vStream to label with; or
  uint32_t number = 0;  // by its number; or
  bool clear = false;   // take labels back; none of the three: show
  bool recursive = false;
  bool list = false;       // a line each, of what is in a directory; else of the paths themselves
  bool all = false;        // of a listing: names that begin with a dot, too
  bool directory = false;  // of a listing: directories themselves, not what is in them
  Style style;             // of JSON, an object a line
};

// Goes on where something fails and says so on stderr; the last such error is returned instead.
Result<void> hint(const HintArguments& arguments);

}  // namespace streamfs::tools
