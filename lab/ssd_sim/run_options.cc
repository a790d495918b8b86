#include "lab/ssd_sim/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/exit_codes.h"
#include "base/result.h"
#include "lab/placement/policy.h"
#include "lab/replay/replay.h"
#include "lab/replay/workload.h"
#include "lab/ssd_sim/commands.h"
#include "lab/ssd_sim/progress.h"
#include "lab/workload/generator.h"
#include "lab/workload/op_source.h"
#include "ssd/geometry.h"
#include "ssd/victim/registry.h"

namespace streamfs::lab::ssd_sim {
namespace {

bool parse(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void RunOptions::add_policy_options(CLI::App& app) {
  app.add_option("--placement", placement,
                 fmt::format("Choose the stream of a page: {}; or load a policy, ./yours.so.",
                             fmt::join(placement_names(), ", ")))
      ->capture_default_str();
  app.add_option(
         "--victim", victim,
         fmt::format("Choose the block to collect: {}.", fmt::join(ssd::victim_names(), ", ")))
      ->capture_default_str();
}

void RunOptions::add_shared_options(CLI::App& app, const std::string& edges) {
  replay_.edges = edges;
  app.add_option("--op", replay_.spare, "Set the spare: spare flash ÷ the pages of --size.")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  auto* size = app.add_option(
      "--size", size_,
      "Take the spare as a share of this size: bytes (4G), or footprint, all pages that are ever "
      "written (default: the peak of live pages). 12 blocks of reserve are added.");
  auto* blocks = app.add_option("--physical-blocks", replay_.physical_blocks,
                                "Make exactly so many blocks in all.");
  app.add_option("--physical-pages", physical_pages_, "Make exactly so many pages in all.")
      ->excludes(blocks)
      ->excludes(size);
  blocks->excludes(size);
  app.add_option("--pages-per-block", replay_.policy.pages_per_block,
                 "Set the 4 KiB pages of an erase block.")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  streams_ = app.add_option("--streams", replay_.policy.streams,
                            "Use so many classes in placements that can have more or fewer "
                            "(default: each placement's; tags: the workload's, 8 for traces).")
                 ->check(CLI::Range(1u, unsigned{ssd::kMaxStreams / 2}));
  app.add_option("--choices", replay_.victim_options.choices, "Draw so many blocks, for d-choices.")
      ->capture_default_str();
  app.add_option("--gc", replay_.policy.gc_mode,
                 "Put copies as in create, for tags, oracle-host and --host-only: own, same, "
                 "shared, persistently-isolated (own) or initially-isolated (shared) (default: own "
                 "for tags, else same).")
      ->transform(CLI::CheckedTransformer(gc_modes()))
      ->option_text("MODE");
  app.add_option("--edges", replay_.edges,
                 "Cut the oracle's lifetimes by log2, quantile, threshold, or best: the cut with "
                 "the lowest WAF, the bound that gaps are measured against.")
      ->check(CLI::IsMember({"log2", "quantile", "threshold", "best"}))
      ->capture_default_str();
  app.add_flag("--host-only", replay_.policy.host_only,
               "Let the placement tag host writes only, as on a real device.");
  prefill_option_ =
      app.add_flag("--prefill,!--no-prefill", prefill_, "Write every page once, in order, first.");
  auto* cell =
      app.add_option("--cell", cell_,
                     "Compute virtual time, too: throughput and latencies of NAND of slc, mlc or "
                     "tlc cells. --pages-per-block must be whole wordlines of 16, 32 or 48.")
          ->check(CLI::IsMember({"slc", "mlc", "tlc"}));
  app.add_option(
         "--load", replay_.load,
         "Let the host offer this share of the bandwidth without GC, for the latencies of --cell.")
      ->check(CLI::Range(0.01, 2.0))
      ->capture_default_str()
      ->needs(cell);
  app.add_option("--warmup", replay_.warmup, "Count after this share of the writes.")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  app.add_option("--seed", generator_.seed, "Draw from this seed.")->capture_default_str();
}

void RunOptions::add_trace_options(CLI::App& app) {
  app.add_option("--shift", load_.shift_bytes, "Add so many bytes to each offset.");
  app.add_flag("--ignore-trims", load_.ignore_trims, "Leave trims out.");
  app.add_option("--max-writes", load_.max_writes,
                 "Stop after so many page writes (default: at the end).");
}

void RunOptions::add_generator_options(CLI::App& app) {
  app.add_option("--footprint", footprint_bytes_,
                 "Let the workload write to so many bytes (default: 1G).")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--writes", generator_.writes,
                 "Write so many 4 KiB pages (default: ten for each page of the footprint).");
  app.add_option("--fill", fill_,
                 "Fill this share of the device with live data, if --size is not given.")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  app.add_option("--hot", hot_,
                 "Send this share of writes / to this share of pages, for hotcold and shifting.")
      ->default_str("0.9/0.1");
  app.add_option("--theta", generator_.theta, "Set the exponent of zipf.")->capture_default_str();
  app.add_option(
         "--read-share", generator_.read_share,
         "Add random reads of 4 KiB: their bytes ÷ all bytes moved, for latencies (--cell).")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  app.add_option(
      "--period", generator_.period,
      "Move the hot pages of shifting every so many page writes (default: as many as pages).");
}

Result<void> RunOptions::resolve() {
  if (!hot_.empty()) {
    const std::string_view text = hot_;
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos || !parse(text.substr(0, slash), generator_.hot_writes) ||
        !parse(text.substr(slash + 1), generator_.hot_space))
      return Error{EINVAL, fmt::format("--hot {}: two shares, as in 0.9/0.1", hot_)};
  }
  const uint64_t pages = footprint_bytes_ / ssd::kPageBytes;
  if (pages >= ssd::kNoPage)
    return Error{EINVAL, fmt::format("--footprint {}: at most 8 TiB", footprint_bytes_)};
  if (footprint_bytes_ != 0 && pages == 0)
    return Error{EINVAL, fmt::format("--footprint {}: less than a page", footprint_bytes_)};
  generator_.pages = static_cast<uint32_t>(pages);
  if (!cell_.empty())
    replay_.cell = cell_ == "slc"   ? ssd::Cell::kSlc
                   : cell_ == "mlc" ? ssd::Cell::kMlc
                                    : ssd::Cell::kTlc;
  load_.reads = replay_.cell.has_value();
  const uint32_t per_block = replay_.policy.pages_per_block;
  if (physical_pages_ != 0) {
    if (physical_pages_ % per_block != 0)
      return Error{EINVAL, fmt::format("--physical-pages {}: not whole blocks of {}",
                                       physical_pages_, per_block)};
    replay_.physical_blocks = static_cast<uint32_t>(physical_pages_ / per_block);
  }
  return resolve_size();
}

Result<void> RunOptions::resolve_size() {
  if (size_.empty() || size_ == "footprint") return {};
  const Error wrong{EINVAL, "--size " + size_ + ": bytes (4G), or footprint"};
  try {
    std::string bytes = size_;
    CLI::AsSizeValue{false}(bytes);
    load_.device_bytes = std::stoull(bytes);
  } catch (const std::exception&) {
    return wrong;
  }
  if (load_.device_bytes < ssd::kPageBytes) return wrong;
  replay_.base_pages = load_.device_bytes / ssd::kPageBytes;
  return {};
}

Result<Workload> RunOptions::load(const std::vector<std::string>& traces, ProgressBar& bar) const {
  bar.set_label("reading");
  return Workload::load(traces, load_, bar.callback());
}

Result<Workload> RunOptions::generate(const std::string& name) const {
  SFS_ASSIGN(std::unique_ptr<OpSource> source, make_generator(name, generator_));
  SFS_ASSIGN(Workload workload, Workload::survey(std::move(source)));
  if (load_.device_bytes != 0 && workload.facts().footprint_pages > replay_.base_pages)
    return Error{EINVAL, fmt::format("a footprint of {} pages on a device of {}",
                                     workload.facts().footprint_pages, replay_.base_pages)};
  return workload;
}

Result<ReplayResult> RunOptions::run(Workload& workload, const std::string& chosen_placement,
                                     const std::string& chosen_victim, uint32_t tag_streams,
                                     bool prefill, ProgressBar& bar) const {
  ReplayOptions options = replay_;
  options.placement = chosen_placement;
  options.victim = chosen_victim;
  options.prefill = {.share = prefill ? 1.0 : 0.0};
  options.progress = bar.callback();
  options.victim_options.seed = generator_.seed;
  const bool by_tag = chosen_placement == "tags" || chosen_placement == "tags-aged";
  if (streams_->empty() && by_tag) options.policy.streams = tag_streams;
  workload.set_prefill(options.prefill);
  if (size_ == "footprint") options.base_pages = workload.facts().footprint_pages;
  if (fill_ < 1 && size_.empty())
    options.base_pages = static_cast<uint64_t>(
        std::ceil(static_cast<double>(workload.facts().peak_live_pages) / fill_));
  bar.set_label(chosen_placement);
  return replay(workload, options);
}

int fail_run(const Error& error) {
  const int code = fail(error);
  if (error.code == EINVAL) return exit_code::kUsage;
  return error.code == ENOSPC ? exit_code::kTooSmall : code;
}

}  // namespace streamfs::lab::ssd_sim
