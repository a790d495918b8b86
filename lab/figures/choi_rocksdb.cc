// Choi (Samsung), RocksDB: an LSM tree, a stream for each level (14 in all) and with none.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/figures/comparison_rows.h"
#include "lab/figures/device_run.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/replay/replay.h"
#include "ssd/geometry.h"
#include "ssd/latency.h"

namespace streamfs::lab::figures {
namespace {

double mean_latency_us(const ReplayResult& result) {
  return ssd::latency_mean_us(result.counters.read_latency, result.counters.write_latency);
}
double lifetime(const ReplayResult& result) {
  return 1 / result.waf();
}

Result<FigureResult> run_choi_rocksdb(const FigureOptions& options) {
  const DeviceRun common{.preset = "enterprise-fdp",
                         .workload = "rocksdb-levels",
                         .capacities = 8,
                         .read_share = 0.5,
                         .prefill = 0,
                         .warmup = 0.25,
                         .gc_mode = ssd::GcMode::kShared};
  SFS_ASSIGN(const ContenderRuns runs, ContenderRuns::run(common,
                                                          {{"off", "legacy"},
                                                           {"a stream a level", "tags", 15},
                                                           {"vStream", "vstream-sgc", 8}},
                                                          options));
  FigureResult result;
  for (size_t i = 1; i < runs.contenders().size(); ++i) {
    const std::string& label = runs.contenders()[i].label;
    const auto paper = [&](double value) { return i == 1 ? std::optional(value) : std::nullopt; };
    result.rows.push_back(
        {label + ", lifetime", "% more", paper(54), percent_change(runs.relative(i, lifetime))});
    result.rows.push_back({label + ", throughput", "% more", paper(15),
                           percent_change(runs.relative(i, mb_a_second))});
    result.rows.push_back({label + ", mean latency", "% less", paper(10),
                           percent_change(runs.relative(i, mean_latency_us), -1)});
  }
  for (size_t i = 0; i < runs.contenders().size(); ++i)
    result.rows.push_back(
        {runs.contenders()[i].label + ", WAF", "", std::nullopt, runs.measured(i, waf_of)});
  result.notes = {
      "54 % more lifetime needs a WAF of at least 1.54 without streams; the row \"off, WAF\" has "
      "ours.",
      "A tree's tables die as a whole, so the number of copies depends on how many tables share a "
      "block of flash: 27 here, also with streams. The source does not say."};
  return result;
}

}  // namespace

// NOLINTBEGIN(bugprone-suspicious-missing-comma): sentences longer than a line
Figure choi_rocksdb() {
  return {
      .name = "choi-rocksdb",
      .source = "Choi (Samsung), RocksDB",
      .shows =
          "RocksDB with a stream for each level, and without streams, under YCSB with half reads",
      .unsaid = {"the device, its spare, how full it is, and the WAF without streams",
                 "sizes of tables and erase blocks",
                 "how a level's two or three streams are chosen"},
      .assumed =
          {"the preset enterprise-fdp; a generated tree of six levels on 70 % of it, each table an "
           "8,192nd of the device (lab/workload/rocksdb_levels.cc); streams within a level by key "
           "range",
           "8 capacities written, a quarter not counted; as many pages read as written, at random",
           "copies of all streams share an open block; vStream: 8 pStreams, vSGC",
           "latency: reads and writes of a host that offers half of the flash's bandwidth; the "
           "source's is that of a database's operations"},
      .seeds = 5,
      .scale = 256,
      .smallest = 512,
      .run = run_choi_rocksdb};
}
// NOLINTEND(bugprone-suspicious-missing-comma)

}  // namespace streamfs::lab::figures
