// streamctl metadata: all of an unmounted filesystem's metadata in one file, and back.
// Thread safety: one call at a time.
#pragma once

#include <string>

#include "base/result.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

struct MetadataArguments {
  std::string meta, data, file;
  std::string mirror;  // of what is restored
  bool degraded = false;
  bool force = false;
  Style style;
};
// Both print what was done.
Result<void> dump_metadata(const MetadataArguments& arguments);
Result<void> restore_metadata(const MetadataArguments& arguments);

}  // namespace streamfs::tools
