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
  app.add_option("--op", replay_.spare, "Spare flash ÷ pages it is a share of.")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  auto* size = app.add_option(
      "--size", size_,
      "What the spare is a share of: bytes (4G), or footprint: all pages that are ever written. "
      "Default: the peak of live pages. 12 blocks of reserve come on top.");
  auto* blocks = app.add_option("--physical-blocks", replay_.physical_blocks,
                                "Exactly so many blocks in all.");
  app.add_option("--physical-pages", physical_pages_, "Exactly so many pages in all.")
      ->excludes(blocks)
      ->excludes(size);
  blocks->excludes(size);
  app.add_option("--pages-per-block", replay_.policy.pages_per_block,
                 "4 KiB pages of an erase block.")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  streams_ = app.add_option("--streams", replay_.policy.streams,
                            "Classes of placements that can have more or fewer (default: what each "
                            "has; tags: the workload's, 8 for traces).")
                 ->check(CLI::Range(1u, unsigned{ssd::kMaxStreams / 2}));
  app.add_option("--choices", replay_.victim_options.choices, "d-choices: blocks drawn.")
      ->capture_default_str();
  app.add_option("--gc", replay_.policy.gc_mode,
                 "tags, oracle-host, --host-only: where copies go: own, same, shared, "
                 "persistently-isolated (own) or initially-isolated (shared), as in create. "
                 "Default: own for tags, else same.")
      ->transform(CLI::CheckedTransformer(gc_modes()))
      ->option_text("MODE");
  app.add_option(
         "--edges", replay_.edges,
         "oracle, between its classes: log2, quantile, threshold, or best, the one of the three "
         "with the lowest WAF: the bound that a gap is measured with.")
      ->check(CLI::IsMember({"log2", "quantile", "threshold", "best"}))
      ->capture_default_str();
  app.add_flag("--host-only", replay_.policy.host_only,
               "The placement tags host writes only, as on a real device.");
  prefill_option_ = app.add_flag("--prefill,!--no-prefill", prefill_,
                                 "Write every page once, in order, before all else.");
  auto* cell =
      app.add_option("--cell", cell_,
                     "Reckon virtual time too: throughput and latencies of NAND of these cells, "
                     "slc, mlc or tlc. --pages-per-block must be whole wordlines of 16, 32 or 48.")
          ->check(CLI::IsMember({"slc", "mlc", "tlc"}));
  app.add_option("--load", replay_.load,
                 "With --cell: share of the bandwidth without GC that the host offers whose "
                 "latencies are reckoned.")
      ->check(CLI::Range(0.01, 2.0))
      ->capture_default_str()
      ->needs(cell);
  app.add_option("--warmup", replay_.warmup, "Share of the writes before counting starts.")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  app.add_option("--seed", generator_.seed, "Of everything that is drawn.")->capture_default_str();
}

void RunOptions::add_trace_options(CLI::App& app) {
  app.add_option("--shift", load_.shift_bytes, "Bytes added to every offset.");
  app.add_flag("--ignore-trims", load_.ignore_trims, "Leave trims out.");
  app.add_option("--max-writes", load_.max_writes,
                 "Stop after so many page writes (default: at the end).");
}

void RunOptions::add_generator_options(CLI::App& app) {
  app.add_option("--footprint", footprint_bytes_, "What the workload writes to (default: 1G).")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--writes", generator_.writes,
                 "4 KiB page writes (default: ten for each page of the footprint).");
  app.add_option("--fill", fill_,
                 "Live data ÷ what the spare is a share of, if --size does not say it.")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  app.add_option("--hot", hot_, "hotcold, shifting: share of writes / share of pages.")
      ->default_str("0.9/0.1");
  app.add_option("--theta", generator_.theta, "zipf: the exponent.")->capture_default_str();
  app.add_option("--read-share", generator_.read_share,
                 "Random reads of 4 KiB ÷ all bytes moved; for latencies (--cell).")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  app.add_option("--period", generator_.period,
                 "shifting: page writes between moves (default: as many as pages).");
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
