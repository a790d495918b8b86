// ssd-sim replay: traces on a device without data, under a placement policy.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/exit_codes.h"
#include "base/result.h"
#include "emulator/counters.h"
#include "emulator/geometry.h"
#include "emulator/policy/placement/policy.h"
#include "emulator/policy/victim/registry.h"
#include "emulator/replay/replay.h"
#include "emulator/replay/workload.h"
#include "emulator/ssd_sim/commands.h"

namespace streamfs::emulator::ssd_sim {
namespace {

class ReplayCommand final : public Command {
 public:
  explicit ReplayCommand(CLI::App& parent)
      : Command(parent.add_subcommand("replay", "Replay a trace on a device without data.")) {
    app_->add_option("trace", path_, "CSV or binary, plain or gzipped; see emulator/trace/trace.h.")
        ->required();
    add_policy_options();
    add_device_options();
    app_->add_option("--shift", load_.shift_bytes, "Bytes added to every offset.");
    app_->add_flag("--ignore-trims", load_.ignore_trims, "Leave trims out.");
    app_->add_option("--warmup", options_.warmup, "Share of the writes before counting starts.")
        ->check(CLI::Range(0.0, 0.99));
    app_->add_flag("--json", json_, "One JSON object.");
  }

  int run() override {
    if (const Result<void> sized = apply_size(); !sized.ok()) return usage(sized.error());
    Result<Workload> workload = Workload::load({path_}, load_);
    if (!workload.ok()) return fail(workload.error());
    if (size_ == "footprint") options_.base_pages = workload->facts().footprint_pages;
    const Result<ReplayResult> result = replay(*workload, options_);
    if (!result.ok())
      return result.error().code == EINVAL ? usage(result.error()) : fail(result.error());
    print(*result);
    return exit_code::kOk;
  }

 private:
  void add_policy_options() {
    app_->add_option("--placement", options_.placement,
                     fmt::format("{}.", fmt::join(placement_names(), ", ")))
        ->capture_default_str();
    app_->add_option("--victim", options_.victim,
                     fmt::format("{}.", fmt::join(victim_names(), ", ")))
        ->capture_default_str();
    app_->add_option("--choices", options_.victim_options.choices, "d-choices: blocks drawn.")
        ->capture_default_str();
    app_->add_option("--seed", options_.victim_options.seed, "Of policies that draw.")
        ->capture_default_str();
    app_->add_option("--streams", options_.policy.streams,
                     "Of placements that can have more or fewer.")
        ->check(CLI::Range(1u, unsigned{kMaxStreams / 2}))
        ->default_str("what each has");
    app_->add_option("--gc", options_.policy.gc_mode,
                     "tags, oracle-host, --host-only: where copies go: own, same or shared, as in "
                     "create.")
        ->transform(CLI::CheckedTransformer(gc_modes()))
        ->default_str("own for tags, else same");
    app_->add_option("--edges", options_.edges, "oracle: log2, quantile, threshold or best.")
        ->check(CLI::IsMember({"log2", "quantile", "threshold", "best"}))
        ->capture_default_str();
    app_->add_flag("--host-only", options_.policy.host_only,
                   "The placement tags host writes only, as on a real device.");
  }

  void add_device_options() {
    app_->add_option("--op", options_.spare, "Spare flash ÷ pages it is a share of.")
        ->check(CLI::Range(0.0, 10.0))
        ->capture_default_str();
    auto* size = app_->add_option(
        "--size", size_,
        "What the spare is a share of: bytes (4G), or footprint: all pages that the trace writes "
        "(default: the peak of live pages).");
    auto* blocks = app_->add_option("--physical-blocks", options_.physical_blocks,
                                    "Exactly so many blocks in all.");
    app_->add_option("--physical-pages", physical_pages_, "Exactly so many pages in all.")
        ->excludes(blocks)
        ->excludes(size);
    blocks->excludes(size);
    app_->add_option("--pages-per-block", options_.policy.pages_per_block, "")
        ->check(CLI::Range(1u, 1u << 20))
        ->capture_default_str();
    app_->add_flag("--prefill", options_.prefill, "Write every page once before the trace.");
  }

  Result<void> apply_size() {
    const uint32_t per_block = options_.policy.pages_per_block;
    if (physical_pages_ != 0) {
      if (physical_pages_ % per_block != 0)
        return Error{
            EINVAL, fmt::format("{} pages are not whole blocks of {}", physical_pages_, per_block)};
      options_.physical_blocks = static_cast<uint32_t>(physical_pages_ / per_block);
    }
    if (size_.empty() || size_ == "footprint") return {};
    try {
      std::string bytes = size_;
      CLI::AsSizeValue{false}(bytes);
      load_.device_bytes = std::stoull(bytes);
    } catch (const std::exception&) {
      return Error{EINVAL, "--size " + size_ + ": bytes or footprint"};
    }
    options_.base_pages = load_.device_bytes / kPageBytes;
    return {};
  }

  static int usage(const Error& error) {
    (void)fail(error);
    return exit_code::kUsage;
  }

  void print(const ReplayResult& result) const {
    if (json_) {
      fmt::print("{}\n", to_json(result).dump(2));
      return;
    }
    const Counters& c = result.counters;
    fmt::print("{} with {}{}{}: WAF {:.4f} at effective spare {:.4f}\n", result.placement,
               result.victim, result.edges.empty() ? "" : ", edges ", result.edges, result.waf(),
               result.effective_spare());
    fmt::print("  {} host pages, {} copied, {} erases; {} physical, {} peak live, {} footprint\n",
               c.host_pages, c.gc_pages, c.erases, result.physical_pages, result.peak_live_pages,
               result.footprint_pages);
  }

  std::string path_;
  std::string size_;
  uint64_t physical_pages_ = 0;
  LoadOptions load_;
  ReplayOptions options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_replay_command(CLI::App& parent) {
  return std::make_unique<ReplayCommand>(parent);
}

}  // namespace streamfs::emulator::ssd_sim
