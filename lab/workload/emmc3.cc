// emmc3: three parallel jobs of lifetimes 2×, 101× and 709×, which only write (Vishwakarma 2019, on
// a 64 GB eMMC in 1,365 blocks of 48 MB). Regions are in proportion to lifetimes; equal regions
// would hardly need streams. Each job has a tag.
#include <array>
#include <memory>

#include "lab/workload/generator.h"
#include "lab/workload/logs.h"
#include "lab/workload/op_source.h"

namespace streamfs::lab {

std::unique_ptr<OpSource> make_emmc3(const GeneratorOptions& options) {
  constexpr std::array<Job, 3> kJobs = {{{2, 0, 0}, {101, 1, 1}, {709, 2, 2}}};
  return std::make_unique<Logs>(options, kJobs, Turn::kRandom);
}

}  // namespace streamfs::lab
