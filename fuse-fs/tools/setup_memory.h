// Reads a machine's persistent memory: namespaces of libnvdimm, DAX filesystems, memmap=.
// Thread safety: as setup_machine.h.
#pragma once

#include <filesystem>

#include "fuse-fs/tools/setup_machine.h"

namespace streamfs::tools {

// Fills in the memories, dax_mounts, memmap and ram of the machine below `root`. Requires: its
// mounts are filled in.
void read_memory(const std::filesystem::path& root, const Questions& questions, Machine& machine);

}  // namespace streamfs::tools
