// Vishwakarma 2019, section 4: the gain by the number of streams, with a write buffer for each and
// with the four that the part has.
#include <fmt/format.h>

#include <algorithm>
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
#include "lab/figures/comparison_rows.h"
#include "lab/figures/device_run.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
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

double pads_per_page(const ReplayResult& result) {
  return static_cast<double>(result.counters.pad_pages) /
         static_cast<double>(result.counters.host_pages);
}

// Adds the rows and the curve of the sweep with so many write buffers; 0: one for each stream.
Result<void> add_sweep(FigureResult& result, const char* label, uint32_t write_buffers,
                       const FigureOptions& options) {
  const DeviceRun common{.preset = "emmc-64g",
                         .fill = kSweptFill,
                         .prefill = 0,
                         .write_buffers = write_buffers,
                         .warmup = 0.5,
                         .gc_mode = ssd::GcMode::kShared};
  std::vector<Contender> contenders;
  for (const uint32_t streams : kSwept)
    contenders.push_back(
        {fmt::format("streams: {}, {}", streams, label), "tags", streams, jobs_in(streams)});
  SFS_ASSIGN(const ContenderRuns runs, ContenderRuns::run(common, contenders, options));
  Curve curve{label, {}};
  for (size_t i = 0; i < kSwept.size(); ++i) {
    const Measured found = runs.measured(i, waf_of);
    result.rows.push_back({contenders[i].label, "WAF", std::nullopt, found});
    if (write_buffers != 0)
      result.rows.push_back({contenders[i].label + ": padding", "of a host page", std::nullopt,
                             runs.measured(i, pads_per_page)});
    curve.points.emplace_back(kSwept.at(i), found.mean);
  }
  result.curves.push_back(std::move(curve));
  return {};
}

Result<FigureResult> run_streams(const FigureOptions& options) {
  FigureResult result;
  SFS_TRY(add_sweep(result, "four buffers", ssd::emmc::kStreams, options));
  const auto& limited = result.curves.front().points;
  const double best =
      std::ranges::min_element(limited, {}, &std::pair<double, double>::second)->first;
  result.rows.insert(result.rows.begin(),
                     {"streams with the least WAF, four buffers", "", 4, {.mean = best}});
  SFS_TRY(add_sweep(result, "a buffer each", 0, options));
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
