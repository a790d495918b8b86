// Yong 2021, figure 6: a phone's F2FS, seven vStreams on three pStreams. The control is the same
// without drift.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/figures/comparison_rows.h"
#include "lab/figures/device_run.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/yong_findings.h"

namespace streamfs::lab::figures {
namespace {

constexpr double kTraceCapacities = 390.74 / 256;

const std::vector<Contender>& fig6_contenders() {
  static const std::vector<Contender> all = {
      {"Legacy", "legacy"},           {"vStream-SGC", "vstream-sgc"},
      {"vStream-NGC", "vstream-ngc"}, {"vStream, not looked up again", "vstream-own"},
      {"Manual", "manual"},           {"Auto", "autostream-mq", 3}};
  return all;
}

Result<ContenderRuns> run_phone(const char* workload, const FigureOptions& options) {
  const DeviceRun common{
      .preset = "vstream-256g", .workload = workload, .capacities = kTraceCapacities};
  return ContenderRuns::run(common, fig6_contenders(), options);
}

void add_relative(FigureResult& result, const ContenderRuns& runs, const std::string& what,
                  ContenderRuns::Value value, std::optional<double> paper) {
  for (size_t i = 1; i < runs.contenders().size(); ++i)
    result.rows.push_back({runs.contenders()[i].label + what, "× Legacy",
                           i == 1 ? paper : std::nullopt, runs.relative(i, value)});
}

CopiesMore copies_more(const ContenderRuns& runs) {
  return {runs.gap("vStream-NGC", "vStream-SGC", copies_a_byte),
          runs.gap("vStream, not looked up again", "vStream-SGC", copies_a_byte)};
}

Result<FigureResult> run_fig6(const FigureOptions& options) {
  SFS_ASSIGN(const ContenderRuns drifting, run_phone("smartphone", options));
  SFS_ASSIGN(const ContenderRuns steady, run_phone("smartphone-steady", options));
  FigureResult result;
  add_relative(result, drifting, ", throughput", mb_a_second, 1.48);
  add_relative(result, drifting, ", copies", copies_a_byte, 0.49);
  add_relative(result, steady, ", no drift, throughput", mb_a_second, std::nullopt);
  add_relative(result, steady, ", no drift, copies", copies_a_byte, std::nullopt);
  for (size_t i = 0; i < drifting.contenders().size(); ++i) {
    const std::string& label = drifting.contenders()[i].label;
    result.rows.push_back({label + ", WAF", "", std::nullopt, drifting.measured(i, waf_of)});
    result.rows.push_back(
        {label + ", no drift, WAF", "", std::nullopt, steady.measured(i, waf_of)});
  }
  result.findings = fig6_findings(copies_more(drifting), copies_more(steady));
  result.notes = {"Nothing drifts in the source's figure 5 either, and vSGC is ahead there.",
                  "In this trace one vStream holds short and long lifetimes (a database's journal "
                  "and its tables), which no map from vStreams to pStreams can separate. Twice as "
                  "much is read as is written, and copies do not slow reads.",
                  "AutoStream saves nothing here. Each request draws a new lifetime, and F2FS's "
                  "log reuses freed segments in turn. The history "
                  "of an address therefore does not predict its lifetime. On the recorded F2FS it "
                  "does, and AutoStream saves copies (yong2021-f2fs)."};
  return result;
}

}  // namespace

// NOLINTBEGIN(bugprone-suspicious-missing-comma): sentences longer than a line
Figure yong2021_fig6() {
  return {
      .name = "yong2021-fig6",
      .source = "Yong 2021, figure 6",
      .shows = "throughput and copies of a phone's F2FS, seven vStreams on 3 pStreams",
      .unsaid = {"the trace: only its totals (table I); neither sizes, lifetimes, the share of "
                 "each stream, nor how full the file system is",
                 "whether it is replayed at full speed, and how often",
                 "the meaning of 10 minutes between two rounds of clustering in a trace of two "
                 "months that is replayed faster"},
      .assumed =
          {"a generated trace with table I's sizes, shares of reads and bytes written; its F2FS is "
           "85 % full (lab/workload/smartphone.cc, committed before any policy had run on it)",
           "F2FS discards 1.4 times the bytes written, table I has 1.77 times; repeated discards "
           "do not matter to an FTL",
           "replayed once at full speed, with reads, all of it counted",
           "a round of clustering after each 64th of the capacity written",
           "the prefill has no vStream; AutoStream is its multi-queue kind, with chunks smaller by "
           "the scale"},
      .seeds = 10,
      .scale = 32,
      .smallest = 256,
      .run = run_fig6};
}
// NOLINTEND(bugprone-suspicious-missing-comma)

}  // namespace streamfs::lab::figures
