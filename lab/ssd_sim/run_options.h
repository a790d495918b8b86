// The options of replay, bench and compare: the device, the policies, what is counted.
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
  // All others. edges: the oracle's default; one policy by itself or a bound to measure gaps with.
  void add_shared_options(CLI::App& app, const std::string& edges);
  void add_trace_options(CLI::App& app);
  void add_generator_options(CLI::App& app);

  // Once the line is parsed. Errors: EINVAL, a value that cannot be.
  Result<void> resolve();

  // Errors: EINVAL for a bad trace, with its line.
  Result<Workload> load(const std::vector<std::string>& traces, ProgressBar& bar) const;
  // Errors: EINVAL for options that cannot be.
  Result<Workload> generate(const std::string& name) const;

  // tag_streams: how many streams the tags of the workload have, for "tags" and "tags-aged" without
  // --streams.
  Result<ReplayResult> run(Workload& workload, const std::string& placement,
                           const std::string& victim, uint32_t tag_streams, bool prefill,
                           ProgressBar& bar) const;

  std::string placement = "nosep", victim = "greedy";
  // As the user said, or what the workload wants.
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

constexpr uint32_t kTagStreams = 8;  // of a trace

// Says what is wrong and returns the exit code: wrong options, too small a device, or as fail().
int fail_run(const Error& error);

}  // namespace streamfs::lab::ssd_sim
