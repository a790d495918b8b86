#include "fuse-fs/nvme/trim.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/types.h"
#include "fuse-fs/nvme/structures.h"

namespace streamfs::nvme {
namespace {

// 0 is "no limit".
uint64_t at_most(uint64_t said, uint64_t otherwise) {
  return said == 0 ? otherwise : std::min(said, otherwise);
}

}  // namespace

TrimLimits trim_limits(const NamespaceIdentity& space, const CommandSetLimits& limits) {
  TrimLimits trim;
  trim.ranges = at_most(limits.dmrl, trim.ranges);
  trim.range_lbas = at_most(limits.dmrsl, trim.range_lbas);
  trim.command_lbas = at_most(limits.dmsl, trim.command_lbas);
  if (!space.has_granularities()) return trim;
  trim.granularity = uint64_t{space.npdg} + 1;
  trim.alignment = uint64_t{space.npda} + 1;
  return trim;
}

LbaRun whole_units(LbaRun run, const TrimLimits& limits) {
  const uint64_t first = div_round_up(run.first, limits.alignment) * limits.alignment;
  const uint64_t end = run.first + run.lbas;
  if (first >= end) return {run.first, 0};
  return {first, (end - first) / limits.granularity * limits.granularity};
}

std::vector<Range> next_ranges(LbaRun& run, const TrimLimits& limits) {
  const uint64_t unit = std::lcm(limits.granularity, limits.alignment);
  const auto in_units = [&](uint64_t lbas) { return lbas < unit ? lbas : lbas / unit * unit; };
  const uint64_t most = in_units(std::min(limits.range_lbas, limits.command_lbas));
  std::vector<Range> ranges;
  uint64_t room = limits.command_lbas;
  while (run.lbas > 0 && ranges.size() < limits.ranges) {
    const uint64_t lbas = std::min({run.lbas, most, in_units(room)});
    if (lbas == 0 || (lbas < unit && lbas < most && lbas < run.lbas)) break;
    ranges.push_back({run.first, static_cast<uint32_t>(lbas)});
    run.first += lbas;
    run.lbas -= lbas;
    room -= lbas;
  }
  return ranges;
}

}  // namespace streamfs::nvme
