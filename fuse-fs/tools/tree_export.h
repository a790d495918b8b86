// Copies files out of a filesystem that is open for reading only, without a mount.
//
// Damaged files, and files that the target refuses, are reported and left out. Sockets are left out
// without a report. All other files are copied.
// Thread safety: one call at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/tools/archive_writer.h"

namespace streamfs::tools {

struct ExportReport {
  struct Finding {
    std::string path, what;
  };
  uint64_t files = 0, directories = 0, others = 0, hard_links = 0;
  uint64_t bytes = 0;                // of data, holes not counted
  std::vector<Finding> damaged;      // left out
  std::vector<Finding> not_written;  // the target refused them
  std::vector<Finding> not_whole;    // written without an owner, an attribute, …
};

// Copies `paths` with all below them; if there are none, everything. Calls `progress` now and then.
// Ends with out.finish(). Errors: ENOENT, a path is not there; EINVAL, a path contains ".."; those
// of the target as a whole, such as ENOSPC, which end the export. `report` tells what was done
// until then.
Result<void> export_tree(data::Filesystem& fs, const std::vector<std::string>& paths,
                         ArchiveWriter& out, ExportReport& report,
                         const std::function<void(const ExportReport&)>& progress);

}  // namespace streamfs::tools
