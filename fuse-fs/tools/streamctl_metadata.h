// streamctl metadata: dumps all metadata of an unmounted filesystem to a file, and restores it.
// Thread safety: one call at a time.
#pragma once

#include <string>

#include "base/result.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

struct MetadataArguments {
  std::string meta, data, file;
  std::string mirror;  // of the META to restore
  bool degraded = false;
  bool force = false;
  Style style;
};
// Both print a report. Errors: those of pair/metadata_dump.h, which has `mirror`, `degraded` and
// `force` as options of restore_dump().
Result<void> dump_metadata(const MetadataArguments& arguments);
Result<void> restore_metadata(const MetadataArguments& arguments);

}  // namespace streamfs::tools
