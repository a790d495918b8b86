// Which ranges a deallocation names: as many, and as long, as the controller takes in one command,
// and only whole units of what it frees. A unit in part it would ignore, or write anew with zeroes.
// Documents: NVM Command Set 1.0, "Dataset Management", "I/O Command Set specific Identify
// Controller" (DMRL, DMRSL, DMSL), "Deallocation" (NPDG, NPDA).
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/structures.h"

namespace streamfs::nvme {

struct TrimLimits {
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  size_t ranges = kMaxRanges;               // of a command
  uint64_t range_lbas = UINT32_MAX;         // of a range
  uint64_t command_lbas = kNoLimit;         // of all ranges of a command
  uint64_t granularity = 1, alignment = 1;  // LBAs: of a range's length, and of its beginning
};

TrimLimits trim_limits(const NamespaceIdentity& space, const CommandSetLimits& limits);

struct LbaRun {
  uint64_t first = 0, lbas = 0;
};
// What of a run is worth deallocating; perhaps nothing.
LbaRun whole_units(LbaRun run, const TrimLimits& limits);
// The ranges of one command, taken off the front of the run.
std::vector<Range> next_ranges(LbaRun& run, const TrimLimits& limits);

}  // namespace streamfs::nvme
