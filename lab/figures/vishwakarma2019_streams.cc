// Vishwakarma 2019, section 4: the gain by the number of streams, with a write buffer for each and
// with the four that the part has.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/figures/device_run.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/parallel.h"
#include "lab/replay/replay.h"
#include "lab/workload/generator.h"
#include "lab/workload/logs.h"
#include "lab/workload/op_source.h"
#include "ssd/ftl/emmc/interface.h"
#include "ssd/geometry.h"

namespace streamfs::lab::figures {
namespace {

constexpr std::array<uint32_t, 10> kSwept = {1, 2, 3, 4, 5, 6, 8, 10, 12, 15};
constexpr uint16_t kSweptJobs = 15;  // as many as there are stream ids
constexpr double kLongestLife = 709;
constexpr double kSweptFill = 0.88;

// Jobs whose lifetimes grow by the same factor from 1 to kLongestLife. Consecutive jobs share one
// of `streams` streams.
MakeSource jobs_in(uint32_t streams) {
  return [streams](const GeneratorOptions& made) -> Result<std::unique_ptr<OpSource>> {
    std::vector<Job> jobs;
    for (uint16_t i = 0; i < kSweptJobs; ++i) {
      const double life = std::pow(kLongestLife, i / double{kSweptJobs - 1});
      const auto stream = static_cast<uint16_t>(i * streams / kSweptJobs);
      jobs.push_back({static_cast<uint32_t>(std::lround(100 * life)), i, stream});
    }
    return std::unique_ptr<OpSource>(std::make_unique<Logs>(made, jobs, Turn::kRandom));
  };
}

struct Sweep {
  const char* label;
  uint32_t write_buffers;
  Curve curve = {};
};

double pads_per_page(const ReplayResult& result) {
  return static_cast<double>(result.counters.pad_pages) /
         static_cast<double>(result.counters.host_pages);
}
double swept_waf(const ReplayResult& result) {
  return result.waf();
}

Result<void> add_sweep(FigureResult& result, Sweep& sweep, const FigureOptions& options) {
  const auto run = [&](size_t index, uint64_t seed) {
    const DeviceRun one{.preset = "emmc-64g",
                        .scale = options.scale,
                        .source = jobs_in(kSwept.at(index)),
                        .fill = kSweptFill,
                        .seed = seed,
                        .placement = "tags",
                        .streams = kSwept.at(index),
                        .prefill = 0,
                        .write_buffers = sweep.write_buffers,
                        .warmup = 0.5,
                        .gc_mode = ssd::GcMode::kShared};
    return run_on_device(one);
  };
  SFS_ASSIGN(const auto runs, over_setups<ReplayResult>(options, kSwept.size(), run));
  sweep.curve.label = sweep.label;
  for (size_t i = 0; i < kSwept.size(); ++i) {
    const Measured found = over_seeds(runs[i], swept_waf);
    const std::string name = fmt::format("streams: {}, {}", kSwept.at(i), sweep.label);
    result.rows.push_back({name, "WAF", std::nullopt, found});
    if (sweep.write_buffers != 0)
      result.rows.push_back(
          {name + ": padding", "of a host page", std::nullopt, over_seeds(runs[i], pads_per_page)});
    sweep.curve.points.emplace_back(kSwept.at(i), found.mean);
  }
  result.curves.push_back(sweep.curve);
  return {};
}

uint32_t best_of(const Curve& curve) {
  double streams = 0, least = HUGE_VAL;
  for (const auto& [at, waf] : curve.points)
    if (waf < least) streams = at, least = waf;
  return static_cast<uint32_t>(streams);
}

Result<FigureResult> run_streams(const FigureOptions& options) {
  Sweep unlimited{"a buffer each", 0};
  Sweep limited{"four buffers", ssd::emmc::kStreams};
  FigureResult swept;
  SFS_TRY(add_sweep(swept, limited, options));
  SFS_TRY(add_sweep(swept, unlimited, options));
  FigureResult result;
  const Measured best = {.mean = static_cast<double>(best_of(limited.curve))};
  result.rows.push_back({"streams with the least WAF, four buffers", "", 4, best});
  for (FigureRow& row : swept.rows) result.rows.push_back(std::move(row));
  result.curves = std::move(swept.curves);
  result.along = "streams";
  result.height = "waf";
  result.notes = {
      "Up to four streams, each has a buffer of one wordline, and more streams separate more "
      "lifetimes. From the fifth stream on, a write to a stream without a buffer pads the wordline "
      "of another.",
      "With a buffer for each stream, the only cost of a stream is its active block.",
      "An erase waits until the newer pages are committed, which pads a few wordlines with any "
      "number of streams from two on."};
  return result;
}

}  // namespace

// NOLINTBEGIN(bugprone-suspicious-missing-comma): sentences longer than a line
Figure vishwakarma2019_streams() {
  return {.name = "vishwakarma2019-streams",
          .source = "Vishwakarma 2019, section 4",
          .shows =
              "WAF of an eMMC by its number of streams, with four write buffers and with one "
              "for each stream",
          .unsaid = {"any figures; it states only that each stream takes a transfer buffer and an "
                     "active block, and that this limits its part to four streams",
                     "the size of a buffer, and the firmware's choice when none is free"},
          .assumed = {"15 jobs written at equal speed in requests of 128 KiB, whose lifetimes grow "
                      "by the same factor from 1 to 709; neighbours share a stream",
                      "a buffer holds one wordline of all planes, 192 KiB; the stream written "
                      "least recently gives its buffer up, and its wordline is padded",
                      "copies have a buffer of their own; the device is 88 % full",
                      "8 capacities written, the first half not counted"},
          .seeds = 2,
          .scale = 32,
          .smallest = 128,
          .run = run_streams};
}
// NOLINTEND(bugprone-suspicious-missing-comma)

}  // namespace streamfs::lab::figures
