// Cuts a deallocation down to the whole units that the controller frees, and splits it into ranges
// within the limits of one command. A controller would ignore a partial unit, or overwrite it with
// zeroes.
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
  size_t ranges = kMaxRanges;               // ranges per command
  uint64_t range_lbas = UINT32_MAX;         // LBAs per range
  uint64_t command_lbas = kNoLimit;         // LBAs per command
  uint64_t granularity = 1, alignment = 1;  // LBAs: of a range's length and of its first LBA
};

TrimLimits trim_limits(const NamespaceIdentity& space, const CommandSetLimits& limits);

struct LbaRun {
  uint64_t first = 0, lbas = 0;
};
// Returns the whole units inside the run; 0 LBAs if there are none.
LbaRun whole_units(LbaRun run, const TrimLimits& limits);
// Removes the ranges of one command from the front of the run and returns them; at least one if the
// run is not empty. Requires: the run is a result of whole_units() or its rest.
std::vector<Range> next_ranges(LbaRun& run, const TrimLimits& limits);

}  // namespace streamfs::nvme
