// The options of replay, bench and compare: the device, the policies, and what is counted.
// Thread safety: none.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/replay/replay.h"
#include "lab/replay/workload.h"
#include "lab/ssd_sim/progress.h"
#include "lab/workload/generator.h"
#include "lab/workload/trace_source.h"

namespace streamfs::lab::ssd_sim {

class RunOptions {
 public:
  RunOptions() = default;
  RunOptions(const RunOptions&) = delete;  // the command line writes into it
  RunOptions& operator=(const RunOptions&) = delete;

  void add_policy_options(CLI::App& app);  // --placement and --victim
  // Adds all others. `edges` is the oracle's default, which differs between a policy by itself and
  // a bound for gaps.
  void add_shared_options(CLI::App& app, const std::string& edges);
  void add_trace_options(CLI::App& app);
  void add_generator_options(CLI::App& app);

  // Resolves the options. Requires: the line is parsed. Errors: EINVAL for an impossible value.
  Result<void> resolve();

  // Errors: those of open(2); EINVAL for a bad trace, with its line.
  Result<Workload> load(const std::vector<std::string>& traces, ProgressBar& bar) const;
  // Errors: EINVAL for impossible options.
  Result<Workload> generate(const std::string& name) const;

  // Replays a workload. `tag_streams` is the number of streams in the workload's tags, for "tags"
  // and "tags-aged" without --streams. Errors: those of replay().
  Result<ReplayResult> run(Workload& workload, const std::string& placement,
                           const std::string& victim, uint32_t tag_streams, bool prefill,
                           ProgressBar& bar) const;

  std::string placement = "nosep", victim = "greedy";
  // Returns the user's choice, or else `wanted`, the workload's.
  bool prefill_or(bool wanted) const { return prefill_option_->empty() ? wanted : prefill_; }
  uint64_t seed() const { return generator_.seed; }

 private:
  Result<void> resolve_size();

  ReplayOptions replay_;
  LoadOptions load_;
  GeneratorOptions generator_;
  std::string size_;
  std::string hot_, cell_;
  uint64_t physical_pages_ = 0;
  uint64_t footprint_bytes_ = 0;
  double fill_ = 1;
  bool prefill_ = false;
  CLI::Option* prefill_option_ = nullptr;
  CLI::Option* streams_ = nullptr;
};

constexpr uint32_t kTagStreams = 8;  // `tag_streams` of a trace

// Prints the error and returns the exit code: wrong options, too small a device, or that of fail().
int fail_run(const Error& error);

}  // namespace streamfs::lab::ssd_sim
