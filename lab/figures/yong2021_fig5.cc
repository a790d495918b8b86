// Yong 2021, figure 5: 64 partitions, each with a vStream, on three pStreams.
#include <fmt/format.h>

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
#include "lab/figures/report.h"
#include "lab/figures/yong_findings.h"

namespace streamfs::lab::figures {
namespace {

const std::vector<Contender>& fig5_contenders() {
  static const std::vector<Contender> all = {
      {"Legacy", "legacy"},
      {"vStream-SGC", "vstream-sgc"},
      {"vStream-NGC", "vstream-ngc"},
      {"Auto, multi-queue", "autostream-mq", 3},
      {"Auto, SFR", "autostream-sfr", 3},
      {"algorithm 2 to the letter", "vstream-literal"},
      {"algorithm 2, spread at first", "vstream-literal-spread"}};
  return all;
}

std::optional<double> if_sgc(const std::string& label, double paper) {
  return label == "vStream-SGC" ? std::optional(paper) : std::nullopt;
}

constexpr double kLongest = 12;  // capacities
constexpr std::array<double, 5> kLengths = {2, 4, 6, 8, kLongest};

Result<ContenderRuns> run_partitions(double capacities, double warmup,
                                     std::vector<Contender> contenders,
                                     const FigureOptions& options) {
  const DeviceRun common{.preset = "vstream-256g",
                         .workload = "vstream64",
                         .capacities = capacities,
                         .warmup = warmup};
  return ContenderRuns::run(common, std::move(contenders), options);
}

// Adds the rows of vSGC and NGC with everything after the prefill counted.
Result<void> add_lengths(FigureResult& result, const FigureOptions& options) {
  std::array<Curve, 2> curves = {{{"vStream-SGC", {}}, {"vStream-NGC", {}}}};
  for (const double capacities : kLengths) {
    SFS_ASSIGN(const ContenderRuns runs, run_partitions(capacities, 0,
                                                        {{"Legacy", "legacy"},
                                                         {"vStream-SGC", "vstream-sgc"},
                                                         {"vStream-NGC", "vstream-ngc"}},
                                                        options));
    const std::string length = fmt::format("{} capacities", capacities);
    for (size_t i = 1; i < runs.contenders().size(); ++i) {
      const std::string label = fmt::format("all of {}, {}", length, runs.contenders()[i].label);
      const Measured faster = runs.relative(i, mb_a_second);
      result.rows.push_back({label + ", throughput", "× Legacy", std::nullopt, faster});
      result.rows.push_back({label + ", copies a host byte", "× Legacy", std::nullopt,
                             runs.relative(i, copies_a_byte)});
      curves.at(i - 1).points.emplace_back(capacities, faster.mean);
    }
    result.findings.push_back(
        beside_ngc("Over " + length, runs.gap("vStream-NGC", "vStream-SGC", copies_a_byte)));
  }
  result.curves.assign(curves.begin(), curves.end());
  result.along = "capacities written after the prefill, all counted";
  result.height = "throughput ÷ Legacy's";
  return {};
}

// NOLINTBEGIN(bugprone-suspicious-missing-comma): sentences longer than a line
Result<FigureResult> run_fig5(const FigureOptions& options) {
  FigureOptions once = options;
  once.seeds = 1;  // round robin uses no random numbers
  SFS_ASSIGN(const ContenderRuns runs, run_partitions(kLongest, 1.0 / 3, fig5_contenders(), once));
  FigureResult result;
  const auto rows = [&](auto make) {
    for (size_t i = 0; i < runs.contenders().size(); ++i)
      if (std::optional<FigureRow> row = make(i, runs.contenders()[i].label))
        result.rows.push_back(*std::move(row));
  };
  using Row = std::optional<FigureRow>;
  rows([&](size_t i, const std::string& label) -> Row {
    if (i == 0) return std::nullopt;
    return FigureRow{label + ", throughput", "× Legacy", if_sgc(label, 3.7),
                     runs.relative(i, mb_a_second)};
  });
  rows([&](size_t i, const std::string& label) -> Row {
    if (i == 0) return std::nullopt;
    return FigureRow{label + ", copies a second", "× Legacy", if_sgc(label, 0.65),
                     runs.relative(i, copied_mb_a_second)};
  });
  rows([&](size_t i, const std::string& label) -> Row {
    if (i == 0) return std::nullopt;
    return FigureRow{label + ", copies a host byte", "× Legacy", std::nullopt,
                     runs.relative(i, copies_a_byte)};
  });
  rows([&](size_t i, const std::string& label) -> Row {
    return FigureRow{label + ", WAF", "", std::nullopt, runs.measured(i, waf_of)};
  });
  rows([&](size_t i, const std::string& label) -> Row {
    if (!label.starts_with("vStream")) return std::nullopt;
    return FigureRow{label + ", throughput ÷ work-conserving bound", "", std::nullopt,
                     runs.measured(i, share_of_bound)};
  });
  const size_t sgc = runs.index_of("vStream-SGC");
  const double faster = runs.relative(sgc, mb_a_second).mean, waf = runs.measured(0, waf_of).mean;
  result.findings = {
      fmt::format("vStream-SGC has {} times Legacy's throughput, {} than Legacy's WAF of {}.",
                  rounded(faster), faster > waf ? "more" : "no more", rounded(waf))};
  SFS_TRY(add_lengths(result, once));
  result.notes = {
      "The source warms the device up by the prefill alone. If counting starts at the end of the "
      "prefill, throughput relative to Legacy grows with the length of the run. The source does "
      "not state that length. While data of the prefill is left, vSGC copies less than NGC: vSGC "
      "sends it to the pStream of cold data, and NGC mixes it with hot data. In the steady state, "
      "neither copies much.",
      "3.7 × and −35 % cannot both be per host byte: if copies fall to .65, NAND does at most 1 ÷ "
      ".65 = 1.54 times as much for the host. Per second they can: a device that is 3.7 times as "
      "fast and copies .65 as much a second copies .18 as much per host byte.",
      "Each copy is also a read, and copies leave dies idle. A device without copies can therefore "
      "be faster than Legacy by more than Legacy's WAF.",
      "The partitions write in lock step, so this workload resonates: Legacy's WAF depends on "
      "whether a block holds whole rounds of all partitions, and three open blocks meet on the "
      "same dies more or less often. The figures therefore depend on the scale.",
      "Algorithm 2 as printed never moves a vStream off the default pStream: if all vStreams begin "
      "there, no other pStream has a mean lifetime. If vStreams begin spread over the pStreams, it "
      "separates as far as that start allows."};
  return result;
}

}  // namespace

Figure yong2021_fig5() {
  return {
      .name = "yong2021-fig5",
      .source = "Yong 2021, figure 5",
      .shows = "throughput and copies, 64 partitions with a vStream each on 3 pStreams",
      .unsaid = {"how long it ran and whether the first rounds count",
                 "whether the cost of GC is counted in all, per host byte, or per second",
                 "where vStreams begin, and the fate of a pStream without vStreams",
                 "whether the prefill carries a vStream, and how fast host and buses are"},
      .assumed = {"12 capacities after the prefill, the first 4 not counted, or all counted",
                  "the device as printed: 270 GiB of flash, collection below 3 % free; its 7 % "
                  "of spare would be 274 GiB",
                  "the prefill has no vStream: it goes to the default pStream, and its "
                  "lifetime is measured like a vStream's",
                  "a round of clustering after each 64th of the capacity written; the source's "
                  "10 minutes are one or two capacities at this speed",
                  "a write buffer of two programs a die, buses of 1.2 GB/s, a host interface "
                  "of 3.1 GB/s; AutoStream in both its kinds, on "
                  "chunks of 1 and 2 MiB; these and SFR's decay period are smaller by the scale"},
      .seeds = 1,
      .scale = 16,
      .smallest = 256,
      .run = run_fig5};
}
// NOLINTEND(bugprone-suspicious-missing-comma)

}  // namespace streamfs::lab::figures
