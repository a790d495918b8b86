// ssd-sim replay and bench: recorded and made workloads on a device without data, under a placement
// policy.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/result.h"
#include "base/wire/control.h"
#include "lab/replay/replay.h"
#include "lab/replay/workload.h"
#include "lab/ssd_sim/commands.h"
#include "lab/ssd_sim/picture.h"
#include "lab/ssd_sim/progress.h"
#include "lab/ssd_sim/run_options.h"
#include "lab/workload/generator.h"
#include "ssd/counters.h"
#include "ssd/latency.h"

namespace streamfs::lab::ssd_sim {
namespace {

class RunCommand : public Command {
 protected:
  explicit RunCommand(CLI::App* app) : Command(app) {
    options_.add_policy_options(*app_);
    options_.add_shared_options(*app_, "log2");
    app_->add_flag("--json", json_, "Print one JSON object.");
    pictures_.add_options(*app_);
  }

  int run_on(Workload& workload, const std::string& name, uint32_t tag_streams, bool prefill,
             ProgressBar& bar) const {
    const Result<ReplayResult> result =
        options_.run(workload, options_.placement, options_.victim, tag_streams, prefill, bar);
    bar.clear();
    if (!result.ok()) return fail_run(result.error());
    print(*result, name);
    const Result<void> drawn = pictures_.draw({{"comparison", {cell_of(*result, name)}}});
    return drawn.ok() ? exit_code::kOk : fail(drawn.error());
  }

  RunOptions options_;
  PictureFiles pictures_;

 private:
  static nlohmann::json cell_of(const ReplayResult& result, const std::string& name) {
    nlohmann::json cell = to_json(result);
    cell["workload"] = name;
    return cell;
  }

  void print(const ReplayResult& result, const std::string& name) const {
    if (json_) {
      nlohmann::json json = cell_of(result, name);
      json["schema"] = wire::kJsonSchema;
      json["seed"] = options_.seed();
      fmt::print("{}\n", json.dump(2));
      return;
    }
    const ssd::Counters& c = result.counters;
    fmt::print("{} with {}{}{}: WAF {:.4f} at effective spare {:.4f}\n", result.placement,
               result.victim, result.edges.empty() ? "" : ", edges ", result.edges, result.waf(),
               result.effective_spare());
    fmt::print("  {} host pages, {} copied, {} erases; {} physical, {} peak live, {} footprint\n",
               c.host_pages, c.gc_pages, c.erases, result.physical_pages, result.peak_live_pages,
               result.footprint_pages);
    if (result.time) print(*result.time);
  }

  static void print(const ssd::VirtualTime& time) {
    const auto line = [](const char* what, const ssd::VirtualTime::Quantiles& q) {
      fmt::print("  {}: p50 {:.0f} µs, p99 {:.0f} µs, p99.9 {:.0f} µs\n", what, q.p50_us, q.p99_us,
                 q.p999_us);
    };
    fmt::print("  virtual time: {:.1f} MB/s saturated, {:.1f} MB/s work-conserving bound\n",
               time.simulated_mb_per_s, time.bound_mb_per_s);
    line("writes", time.write);
    if (time.read.p50_us > 0) line("reads", time.read);
  }

  bool json_ = false;
};

class ReplayCommand final : public RunCommand {
 public:
  explicit ReplayCommand(CLI::App& parent)
      : RunCommand(parent.add_subcommand(
            "replay", "Replay traces, one after the other, on a device without data.")) {
    app_->add_option("trace", paths_,
                     "Traces, CSV or binary, plain or gzipped, as ssd-sim import writes them.")
        ->required();
    options_.add_trace_options(*app_);
    app_->footer(kExitCodes);
  }

  int run() override {
    if (const Result<void> good = options_.resolve(); !good.ok()) return fail_run(good.error());
    ProgressBar bar;
    Result<Workload> workload = options_.load(paths_, bar);
    bar.clear();
    if (!workload.ok()) return fail(workload.error());
    return run_on(*workload, fmt::format("{}", fmt::join(paths_, " ")), kTagStreams,
                  options_.prefill_or(false), bar);
  }

 private:
  std::vector<std::string> paths_;
};

class BenchCommand final : public RunCommand {
 public:
  explicit BenchCommand(CLI::App& parent)
      : RunCommand(parent.add_subcommand("bench", "Run replay on a generated workload.")) {
    std::string what = "One of\n";
    for (const GeneratorKind& kind : generators())
      what += fmt::format("{}: {}\n", kind.name, kind.what);
    app_->add_option("workload", name_, what)->required();
    options_.add_generator_options(*app_);
    app_->footer("All but rocksdb-levels start on a full device unless --no-prefill is given.\n" +
                 std::string(kExitCodes));
  }

  int run() override {
    if (const Result<void> good = options_.resolve(); !good.ok()) return fail_run(good.error());
    const Result<const GeneratorKind*> kind = find_generator(name_);
    if (!kind.ok()) return fail_run(kind.error());
    Result<Workload> workload = options_.generate(name_);
    if (!workload.ok()) return fail_run(workload.error());
    ProgressBar bar;
    return run_on(*workload, name_, (*kind)->streams, options_.prefill_or((*kind)->prefill), bar);
  }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<Command> make_replay_command(CLI::App& parent) {
  return std::make_unique<ReplayCommand>(parent);
}

std::unique_ptr<Command> make_bench_command(CLI::App& parent) {
  return std::make_unique<BenchCommand>(parent);
}

}  // namespace streamfs::lab::ssd_sim
