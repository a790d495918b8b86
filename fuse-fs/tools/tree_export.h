// Takes files out of a filesystem that is open for reading only, without a mount.
//
// What is damaged is named and left out, and everything else is taken.
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

// `paths`: what to take, with all below; none: everything. ENOENT: one that is not there. Calls
// `progress` now and then. Errors of the target as a whole, such as ENOSPC, end it; `report` tells
// what was done until then.
Result<void> export_tree(data::Filesystem& fs, const std::vector<std::string>& paths,
                         ArchiveWriter& out, ExportReport& report,
                         const std::function<void(const ExportReport&)>& progress);

}  // namespace streamfs::tools
