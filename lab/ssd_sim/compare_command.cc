// ssd-sim compare: policies × workloads, as a table, CSV, JSON and a picture.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/exit_codes.h"
#include "base/output_file.h"
#include "base/result.h"
#include "lab/placement/policy.h"
#include "lab/replay/replay.h"
#include "lab/replay/workload.h"
#include "lab/ssd_sim/commands.h"
#include "lab/ssd_sim/comparison.h"
#include "lab/ssd_sim/picture.h"
#include "lab/ssd_sim/progress.h"
#include "lab/ssd_sim/run_options.h"
#include "lab/workload/generator.h"
#include "ssd/victim/registry.h"

namespace streamfs::lab::ssd_sim {
namespace {

class CompareCommand final : public Command {
 public:
  explicit CompareCommand(CLI::App& parent)
      : Command(parent.add_subcommand(
            "compare", "Compare policies on traces and workloads, each on a device of its own.")) {
    app_->add_option("trace", traces_, "Traces; each is replayed by itself.");
    app_->add_option("--workload", generated_,
                     "Add these workloads of bench, with its options (ssd-sim list).")
        ->delimiter(',');
    app_->add_option("--placement", placements_,
                     fmt::format("Compare these placements: some of {}.",
                                 fmt::join(placement_names(), ", ")))
        ->delimiter(',')
        ->default_str("nosep,sepgc,sepbit,oracle");
    app_->add_option("--victim", victims_,
                     fmt::format("Compare these victim policies: some of {}.",
                                 fmt::join(ssd::victim_names(), ", ")))
        ->delimiter(',')
        ->default_str("greedy");
    options_.add_shared_options(*app_, "best");
    options_.add_trace_options(*app_);
    options_.add_generator_options(*app_);
    app_->add_option("--csv", csv_, "Write the results to this file.");
    pictures_.add_options(*app_);
    app_->add_option("--json", json_, "Write all counters to this file; - is standard output.");
    app_->footer(kExitCodes);
  }

  int run() override {
    if (traces_.empty() && generated_.empty())
      return fail_run(Error{EINVAL, "nothing to compare on: name traces or --workload"});
    if (const Result<void> good = options_.resolve(); !good.ok()) return fail_run(good.error());
    if (const Result<void> good = check_names(); !good.ok()) return fail_run(good.error());
    for (const std::string& trace : traces_)
      if (const int code = on_trace(trace); code != exit_code::kOk) return code;
    for (const std::string& name : generated_)
      if (const int code = on_generated(name); code != exit_code::kOk) return code;
    bar_.clear();
    const Result<void> written = write();
    return written.ok() ? exit_code::kOk : fail(written.error());
  }

 private:
  // Checks all names before hours of work.
  Result<void> check_names() {
    comparison_.placements = placements_;
    comparison_.victims = victims_;
    for (const std::string& name : generated_) SFS_TRY(find_generator(name));
    const auto known = [](const std::vector<std::string>& names, const std::string& name,
                          const char* what) -> Result<void> {
      if (std::ranges::find(names, name) != names.end()) return {};
      return Error{EINVAL,
                   fmt::format("no {} '{}'; there are {}", what, name, fmt::join(names, ", "))};
    };
    for (const std::string& name : placements_)  // a name with a slash is a shared object
      if (name.find('/') == std::string::npos) SFS_TRY(known(placement_names(), name, "placement"));
    for (const std::string& name : victims_)
      SFS_TRY(known(ssd::victim_names(), name, "victim policy"));
    return {};
  }

  int on_trace(const std::string& path) {
    Result<Workload> workload = options_.load({path}, bar_);
    bar_.clear();
    if (!workload.ok()) return fail(workload.error());
    return all_policies(*workload, std::filesystem::path(path).filename(), kTagStreams, false);
  }

  int on_generated(const std::string& name) {
    Result<Workload> workload = options_.generate(name);
    if (!workload.ok()) return fail_run(workload.error());
    const Result<const GeneratorKind*> kind = find_generator(name);
    return all_policies(*workload, name, (*kind)->streams, (*kind)->prefill);
  }

  int all_policies(Workload& workload, std::string name, uint32_t tag_streams, bool prefill) {
    comparison_.workloads.push_back(std::move(name));
    for (const std::string& victim : victims_) {
      for (const std::string& placement : placements_) {
        Result<ReplayResult> result = options_.run(workload, placement, victim, tag_streams,
                                                   options_.prefill_or(prefill), bar_);
        if (!result.ok()) {
          bar_.clear();
          return fail_run(result.error());
        }
        comparison_.results.push_back(std::move(result).value());
      }
    }
    return exit_code::kOk;
  }

  Result<void> write() const {
    if (json_ == "-")
      fmt::print("{}\n", json_of(comparison_).dump(2));
    else
      fmt::print("{}", table_of(comparison_));
    if (!csv_.empty()) SFS_TRY(write_whole(csv_, csv_of(comparison_)));
    if (!json_.empty() && json_ != "-")
      SFS_TRY(write_whole(json_, json_of(comparison_).dump(2) + "\n"));
    return pictures_.draw({{"comparison", json_of(comparison_)}});
  }

  std::vector<std::string> traces_, generated_;
  std::vector<std::string> placements_ = {"nosep", "sepgc", "sepbit", "oracle"};
  std::vector<std::string> victims_ = {"greedy"};
  std::string csv_, json_;
  PictureFiles pictures_;
  RunOptions options_;
  Comparison comparison_;
  ProgressBar bar_;
};

}  // namespace

std::unique_ptr<Command> make_compare_command(CLI::App& parent) {
  return std::make_unique<CompareCommand>(parent);
}

}  // namespace streamfs::lab::ssd_sim
