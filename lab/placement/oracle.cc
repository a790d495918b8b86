#include "lab/placement/oracle.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lab/placement/policy.h"
#include "lab/workload/facts.h"
#include "lab/workload/lifetimes.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"

namespace streamfs::lab {
namespace {

std::vector<uint64_t> log2_edges(uint16_t streams, const PolicyOptions& options) {
  std::vector<uint64_t> edges;
  for (uint32_t i = 0; i + 1 < streams; ++i)
    edges.push_back(uint64_t{options.pages_per_block} << std::min(i, 40u));
  return edges;
}

std::vector<uint64_t> quantile_edges(uint16_t streams, const WorkloadFacts& facts) {
  const LifetimeHistogram& lives = facts.lifetimes;
  std::vector<uint64_t> edges;
  for (uint32_t i = 1; i < streams && !lives.empty(); ++i) {
    const uint64_t edge = lives.at(lives.total() * i / streams);
    if (edges.empty() || edge > edges.back()) edges.push_back(edge);
  }
  return edges;
}

std::vector<uint64_t> threshold_edges(uint16_t streams, const WorkloadFacts& facts) {
  const std::vector<uint32_t> shifts =
      streams <= 4 ? std::vector<uint32_t>{7, 3, 1} : std::vector<uint32_t>{9, 7, 5, 3, 2, 1};
  std::vector<uint64_t> edges;
  for (const uint32_t shift : shifts)
    if (edges.size() + 1 < streams) edges.push_back(facts.peak_live_pages >> shift);
  return edges;
}

}  // namespace

Oracle::Oracle(uint16_t streams, const PolicyOptions& options, const WorkloadFacts& facts)
    : edges_(options.edges == "quantile"    ? quantile_edges(streams, facts)
             : options.edges == "threshold" ? threshold_edges(streams, facts)
                                            : log2_edges(streams, options)),
      death_(facts.footprint_pages, kNever) {}

ssd::FrontierId Oracle::class_of(ssd::Lpn page, uint64_t clock) const {
  if (death_[page] == kNever) return static_cast<ssd::FrontierId>(edges_.size());
  const uint64_t left = death_[page] - clock;
  ssd::FrontierId result = 0;
  while (result < edges_.size() && left >= edges_[result]) ++result;
  return result;
}

}  // namespace streamfs::lab
