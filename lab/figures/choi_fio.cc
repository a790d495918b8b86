// Choi (Samsung), FIO: four sequential writers of different lifetimes beside random readers, with a
// stream for each and with none.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/figures/comparison_rows.h"
#include "lab/figures/device_run.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/parallel.h"
#include "lab/replay/replay.h"
#include "ssd/counters.h"
#include "ssd/geometry.h"
#include "ssd/latency.h"

namespace streamfs::lab::figures {
namespace {

constexpr double kFioCapacities = 10, kFioWarmup = 0.5;

// Collects reads and writes per second of simulated time, from one batch of the workload to the
// next (2,048 pages: a tenth of a block, so that a collection shows).
class Rates {
 public:
  explicit Rates(uint64_t from_writes) : from_(from_writes) {}

  void operator()(const ssd::Counters& now) {
    if (now.host_pages < from_) return;
    if (before_ && now.saturated_ns > before_->saturated_ns) {
      const auto ns = static_cast<double>(now.saturated_ns - before_->saturated_ns);
      reads.push_back(static_cast<double>(now.read_pages - before_->read_pages) * 1e6 / ns);
      writes.push_back(static_cast<double>(now.host_pages - before_->host_pages) * 1e6 / ns);
    }
    before_ = now;
  }

  std::vector<double> reads, writes;  // thousands of pages a second

 private:
  const uint64_t from_;
  std::optional<ssd::Counters> before_;
};

// Returns the standard deviation ÷ mean.
double variation(const std::vector<double>& rates) {
  double sum = 0, squares = 0;
  for (const double rate : rates) {
    sum += rate;
    squares += rate * rate;
  }
  const auto count = static_cast<double>(rates.size());
  const double mean = sum / count;
  return std::sqrt(std::max(0.0, squares / count - mean * mean)) / mean;
}

struct FioRun {
  double waf = 0, reads_variation = 0, writes_variation = 0, mb_per_s = 0, read_p99_us = 0;
  std::vector<double> reads;
};

Result<FioRun> fio_run(bool streams, uint64_t seed, uint32_t scale) {
  DeviceRun run{.preset = "enterprise-fdp",
                .scale = scale,
                .workload = "fio4",
                .capacities = kFioCapacities,
                .read_share = 0.7,
                .seed = seed,
                .placement = streams ? "tags" : "legacy",
                .streams = streams ? 4u : 0u,
                .prefill = 0,
                .warmup = kFioWarmup,
                .gc_mode = ssd::GcMode::kShared};
  SFS_ASSIGN(const uint64_t pages, device_pages(run));
  const auto writes = static_cast<uint64_t>(kFioCapacities * static_cast<double>(pages));
  const auto from = static_cast<uint64_t>(kFioWarmup * static_cast<double>(writes));
  Rates rates(from);
  run.sample = [&](const ssd::Counters& now) { rates(now); };
  SFS_ASSIGN(const ReplayResult result, run_on_device(run));
  return FioRun{.waf = waf_of(result),
                .reads_variation = variation(rates.reads),
                .writes_variation = variation(rates.writes),
                .mb_per_s = mb_a_second(result),
                .read_p99_us = ssd::latency_quantile_us(result.counters.read_latency, 0.99),
                .reads = rates.reads};
}

Measured ratio(const std::vector<FioRun>& on, const std::vector<FioRun>& off,
               double FioRun::* what) {
  std::vector<double> values;
  for (size_t i = 0; i < on.size(); ++i) values.push_back(on[i].*what / off[i].*what);
  return over_seeds(values);
}

Curve curve_of(const char* label, const FioRun& run) {
  Curve curve{label, {}};
  for (size_t i = 0; i < std::min<size_t>(run.reads.size(), 200); ++i)
    curve.points.emplace_back(static_cast<double>(i), run.reads[i]);
  return curve;
}

Result<FigureResult> run_choi_fio(const FigureOptions& options) {
  SFS_ASSIGN(const auto runs, over_setups<FioRun>(options, 2, [&](size_t streams, uint64_t seed) {
               return fio_run(streams == 1, seed, options.scale);
             }));
  const std::vector<FioRun>&off = runs[0], &on = runs[1];
  FigureResult result;
  result.rows = {{"WAF without ÷ with streams (lifetime)", "×", 2, ratio(off, on, &FioRun::waf)},
                 {"WAF, streams off", "", std::nullopt, over_seeds(off, &FioRun::waf)},
                 {"WAF, streams on", "", std::nullopt, over_seeds(on, &FioRun::waf)},
                 {"read IOPS, deviation ÷ mean, streams off", "%", std::nullopt,
                  over_seeds(off, &FioRun::reads_variation)},
                 {"read IOPS, deviation ÷ mean, streams on", "%", std::nullopt,
                  over_seeds(on, &FioRun::reads_variation)},
                 {"write throughput, deviation ÷ mean, streams off", "%", std::nullopt,
                  over_seeds(off, &FioRun::writes_variation)},
                 {"write throughput, deviation ÷ mean, streams on", "%", std::nullopt,
                  over_seeds(on, &FioRun::writes_variation)},
                 {"throughput, on ÷ off", "×", std::nullopt, ratio(on, off, &FioRun::mb_per_s)},
                 {"read p99, on ÷ off", "×", std::nullopt, ratio(on, off, &FioRun::read_p99_us)}};
  for (FigureRow& row : result.rows)
    if (row.unit == "%") {
      row.ours.mean *= 100;
      row.ours.least *= 100;
      row.ours.most *= 100;
    }
  result.curves = {curve_of("streams off", off[0]), curve_of("streams on", on[0])};
  result.along = "windows of equal work, the first ones";
  result.height = "read kiops";
  result.notes = {
      "The source's curves of read IOPS and write throughput have no numbers. Only two statements "
      "can be compared: with streams both are steadier, and lifetime more than doubles.",
      "Reads and writes come in one order here, so both rates move together. Random reads, 64 at "
      "once, take most of the flash's time, so throughput gains less than WAF falls."};
  return result;
}

}  // namespace

// NOLINTBEGIN(bugprone-suspicious-missing-comma): sentences longer than a line
Figure choi_fio() {
  return {
      .name = "choi-fio",
      .source = "Choi (Samsung), FIO",
      .shows = "WAF and steadiness of four sequential writers beside random reads, 70 % to 30 %",
      .unsaid = {"the device, its spare and how full it is",
                 "whether lifetimes are the jobs' regions at equal speed",
                 "the numbers of its curves, but for a lifetime of more than 2 ×"},
      .assumed =
          {"the preset enterprise-fdp, full; regions in proportion to lifetimes, written at equal "
           "speed",
           "10 capacities written, the first half not counted; random reads, up to 64 at once, at "
           "full speed",
           "copies of all streams share an open block (initially isolated)",
           "steadiness: standard deviation over mean of windows of 2,048 pages moved, a tenth of "
           "a block"},
      .seeds = 5,
      .scale = 256,
      .smallest = 512,
      .run = run_choi_fio};
}
// NOLINTEND(bugprone-suspicious-missing-comma)

}  // namespace streamfs::lab::figures
