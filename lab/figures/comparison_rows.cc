#include "lab/figures/comparison_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "lab/figures/device_run.h"
#include "lab/figures/figure.h"
#include "lab/figures/parallel.h"
#include "lab/replay/replay.h"
#include "ssd/geometry.h"

namespace streamfs::lab::figures {

Result<ContenderRuns> ContenderRuns::run(const DeviceRun& common, std::vector<Contender> contenders,
                                         const FigureOptions& options) {
  const auto run = [&](size_t contender, uint64_t seed) {
    DeviceRun one = common;
    one.scale = options.scale;
    one.placement = contenders[contender].placement;
    one.streams = contenders[contender].streams;
    if (contenders[contender].source) one.source = contenders[contender].source;
    one.full_size = contenders[contender].full_size;
    one.seed = seed;
    return run_on_device(one);
  };
  ContenderRuns runs;
  SFS_ASSIGN(runs.results_, over_setups<ReplayResult>(options, contenders.size(), run));
  runs.contenders_ = std::move(contenders);
  return runs;
}

Measured ContenderRuns::measured(size_t contender, Value value) const {
  return over_seeds(results_[contender], value);
}

Measured ContenderRuns::relative(size_t contender, Value value) const {
  std::vector<double> values;
  for (size_t seed = 0; seed < results_[contender].size(); ++seed)
    values.push_back(value(results_[contender][seed]) / value(results_[0][seed]));
  return over_seeds(values);
}

Measured ContenderRuns::gap(const std::string& more, const std::string& less, Value value) const {
  const size_t upper = index_of(more), lower = index_of(less);
  std::vector<double> values;
  for (size_t seed = 0; seed < results_[upper].size(); ++seed) {
    const double of = value(results_[0][seed]);
    values.push_back((value(results_[upper][seed]) - value(results_[lower][seed])) / of);
  }
  return over_seeds(values);
}

size_t ContenderRuns::index_of(const std::string& label) const {
  const auto found = std::ranges::find(contenders_, label, &Contender::label);
  SFS_ASSERT(found != contenders_.end());
  return static_cast<size_t>(found - contenders_.begin());
}

Measured percent_change(const Measured& ratio, double sign) {
  const auto change = [&](double value) { return sign * (value - 1) * 100; };
  const auto [least, most] = std::minmax({change(ratio.least), change(ratio.most)});
  return {.mean = change(ratio.mean), .least = least, .most = most, .seeds = ratio.seeds};
}

double waf_of(const ReplayResult& result) {
  return result.waf();
}

double copies_a_byte(const ReplayResult& result) {
  return static_cast<double>(result.counters.gc_pages) /
         static_cast<double>(result.counters.host_pages);
}

double copied_mb_a_second(const ReplayResult& result) {
  const auto bytes = static_cast<double>(result.counters.gc_pages * ssd::kPageBytes);
  return bytes * 1e3 / static_cast<double>(result.counters.saturated_ns);
}

double mb_a_second(const ReplayResult& result) {
  return result.time ? result.time->simulated_mb_per_s : 0;
}

double share_of_bound(const ReplayResult& result) {
  return result.time ? result.time->simulated_mb_per_s / result.time->bound_mb_per_s : 0;
}

}  // namespace streamfs::lab::figures
