#include "emulator/figures/comparison_rows.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "emulator/figures/device_run.h"
#include "emulator/figures/figure.h"
#include "emulator/figures/parallel.h"
#include "emulator/geometry.h"
#include "emulator/replay/replay.h"

namespace streamfs::emulator::figures {

Result<ContenderRuns> ContenderRuns::run(const DeviceRun& common, std::vector<Contender> contenders,
                                         const FigureOptions& options) {
  const size_t seeds = options.seeds;
  std::vector<std::optional<ReplayResult>> results(contenders.size() * seeds);
  SFS_TRY(in_parallel(options.jobs, results.size(), [&](size_t i) -> Result<void> {
    DeviceRun one = common;
    one.scale = options.scale;
    one.placement = contenders[i / seeds].placement;
    one.streams = contenders[i / seeds].streams;
    one.seed = 1 + i % seeds;
    SFS_ASSIGN(results[i], run_on_device(one));
    return {};
  }));
  ContenderRuns runs;
  runs.contenders_ = std::move(contenders);
  runs.results_.resize(runs.contenders_.size());
  for (size_t i = 0; i < results.size(); ++i)
    runs.results_[i / seeds].push_back(
        *std::move(results[i]));  // NOLINT(bugprone-unchecked-optional-access): all ran
  return runs;
}

Measured ContenderRuns::measured(size_t contender, Value value) const {
  std::vector<double> values;
  for (const ReplayResult& result : results_[contender]) values.push_back(value(result));
  return over_seeds(values);
}

Measured ContenderRuns::relative(size_t contender, Value value) const {
  std::vector<double> values;
  for (size_t seed = 0; seed < results_[contender].size(); ++seed)
    values.push_back(value(results_[contender][seed]) / value(results_[0][seed]));
  return over_seeds(values);
}

size_t ContenderRuns::index_of(const std::string& label) const {
  const auto found = std::ranges::find(contenders_, label, &Contender::label);
  SFS_ASSERT(found != contenders_.end());
  return static_cast<size_t>(found - contenders_.begin());
}

double waf_of(const ReplayResult& result) {
  return result.waf();
}

double copies_a_byte(const ReplayResult& result) {
  return static_cast<double>(result.counters.gc_pages) /
         static_cast<double>(result.counters.host_pages);
}

double copied_mb_a_second(const ReplayResult& result) {
  const auto bytes = static_cast<double>(result.counters.gc_pages * kPageBytes);
  return bytes * 1e3 / static_cast<double>(result.counters.saturated_ns);
}

double mb_a_second(const ReplayResult& result) {
  return result.time ? result.time->simulated_mb_per_s : 0;
}

double share_of_bound(const ReplayResult& result) {
  return result.time ? result.time->simulated_mb_per_s / result.time->bound_mb_per_s : 0;
}

}  // namespace streamfs::emulator::figures
