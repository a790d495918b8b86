// Vishwakarma 2019, figure 5.2: three jobs on an eMMC with streams and without, by its fill.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/figures/comparison_rows.h"
#include "lab/figures/device_run.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "ssd/ftl/emmc/active_block.h"
#include "ssd/ftl/emmc/interface.h"

namespace streamfs::lab::figures {
namespace {

constexpr std::array<int, 11> kFills = {50, 60, 70, 80, 84, 86, 88, 90, 91, 95, 100};
// 1,400 GB are written to 64 GB.
constexpr double kWritten = 1400.0 / 64;

// WAF at one fill. `on`: with streams. `off`: without, and copies have an active block of their
// own, as in such firmware. `mixed`: without, and copies go to the host's active block.
struct AtFill {
  Measured on, off, mixed;
  double of_off, of_mixed;  // on ÷ off
};

Result<AtFill> at_fill(int fill, const FigureOptions& options) {
  const DeviceRun common{.preset = "emmc-64g",
                         .workload = "emmc3",
                         .fill = fill / 100.0,
                         .capacities = kWritten,
                         .prefill = 0};
  SFS_ASSIGN(
      const ContenderRuns runs,
      ContenderRuns::run(common, {{"on", "emmc"}, {"off", "legacy"}, {"mixed", "nosep"}}, options));
  const Measured on = runs.measured(0, waf_of), off = runs.measured(1, waf_of),
                 mixed = runs.measured(2, waf_of);
  return AtFill{on, off, mixed, on.mean / off.mean, on.mean / mixed.mean};
}

// Returns the fill at which the line through the ratios first falls to half; 0: it does not.
double half_at(const std::vector<AtFill>& found, double AtFill::* ratio) {
  for (size_t i = 1; i < found.size(); ++i) {
    const double before = found[i - 1].*ratio, after = found[i].*ratio;
    if (before < 0.5 || after >= 0.5) continue;
    return kFills[i - 1] + (kFills[i] - kFills[i - 1]) * (before - 0.5) / (before - after);
  }
  return 0;
}

double least(const std::vector<AtFill>& found, double AtFill::* ratio) {
  double best = 1;
  for (const AtFill& one : found) best = std::min(best, one.*ratio);
  return best;
}

void add_fills(FigureResult& result, const std::vector<AtFill>& found, const char* label,
               Measured AtFill::* waf) {
  Curve curve{label, {}};
  for (size_t i = 0; i < kFills.size(); ++i) {
    curve.points.emplace_back(kFills[i], (found[i].*waf).mean);
    result.rows.push_back(
        {fmt::format("{} % full, {}", kFills[i], label), "WAF", std::nullopt, found[i].*waf});
  }
  result.curves.push_back(std::move(curve));
}

Result<FigureResult> run_vishwakarma(const FigureOptions& options) {
  std::vector<AtFill> found;
  for (const int fill : kFills) {
    SFS_ASSIGN(const AtFill one, at_fill(fill, options));
    found.push_back(one);
  }
  FigureResult result;
  const auto fact = [&](const char* label, const char* unit, std::optional<double> paper,
                        double ours) {
    result.rows.push_back({label, unit, paper, {.mean = ours}});
  };
  fact("WAF with streams ÷ without, at best", "", 0.5, least(found, &AtFill::of_off));
  fact("the same, where off has no block for copies", "", std::nullopt,
       least(found, &AtFill::of_mixed));
  fact("fill from which on it is half (0: nowhere)", "%", std::nullopt,
       half_at(found, &AtFill::of_off));
  fact("half, where off has no block for copies", "%", std::nullopt,
       half_at(found, &AtFill::of_mixed));
  fact("RAM for four streams", "bytes", 108,
       sizeof(std::array<ssd::emmc::ActiveBlock, ssd::emmc::kStreams>));
  add_fills(result, found, "streams on", &AtFill::on);
  add_fills(result, found, "streams off", &AtFill::off);
  add_fills(result, found, "off, no block for copies", &AtFill::mixed);
  result.along = "% full";
  result.height = "waf";
  result.notes = {
      "Above 90 % fill the device has no streams (the source's section 5), so the curves of on and "
      "off meet there.",
      "Streams can save only what the device would copy without them, and an emptier device copies "
      "little. Streams halve the WAF from the fill named here up to 90 %."};
  return result;
}

}  // namespace

// NOLINTBEGIN(bugprone-suspicious-missing-comma): sentences longer than a line
Figure vishwakarma2019_waf() {
  return {
      .name = "vishwakarma2019-waf",
      .source = "Vishwakarma 2019, figure 5.2",
      .shows = "WAF of an eMMC with streams and without, three jobs of lifetimes 2, 101, 709",
      .unsaid = {"how full the device is, and its spare",
                 "whether the jobs' lifetimes come from the sizes of their regions at equal speed, "
                 "and whether the regions are written in order",
                 "how its firmware collects garbage; the purpose of all but three of the 27 bytes"},
      .assumed =
          {"7 % spare and 12 blocks; greedy collection; copies go to an active block of their own",
           "regions in proportion to lifetimes, written at equal speed, each from front to back in "
           "requests of 128 KiB; equal regions would leave nothing to save",
           "1,400 GB are written to 64 GB after a secure erase, all of it counted",
           "pages of the global context are not counted",
           "the regions fill the given share of the device; the fill for half is interpolated "
           "between two fills"},
      .seeds = 2,
      .scale = 8,
      .smallest = 128,
      .run = run_vishwakarma};
}
// NOLINTEND(bugprone-suspicious-missing-comma)

}  // namespace streamfs::lab::figures
