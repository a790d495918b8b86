// Choi (Samsung), RocksDB: the gain of a stream a level by the size of the tree and the number of
// tables in a block of flash. The source says neither.
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "lab/figures/comparison_rows.h"
#include "lab/figures/device_run.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/workload/generator.h"
#include "ssd/geometry.h"

namespace streamfs::lab::figures {
namespace {

constexpr std::array<int, 4> kTrees = {60, 65, 70, 73};  // % of the device
constexpr std::array<uint32_t, 4> kTablesPerBlock = {1, 4, 16, 32};
constexpr double kPublished = 54;  // % more lifetime

Result<ContenderRuns> run_tree(int tree, uint32_t tables, const FigureOptions& options) {
  DeviceRun common{.preset = "enterprise-fdp",
                   .scale = options.scale,
                   .capacities = 6,
                   .prefill = 0,
                   .warmup = 0.4,
                   .gc_mode = ssd::GcMode::kSameStream};
  SFS_ASSIGN(const uint32_t block_pages, pages_per_block(common));
  common.source = [tree, pages = block_pages / tables](const GeneratorOptions& made) {
    GeneratorOptions sized = made;
    sized.tree = tree / 100.0;
    sized.table_pages = pages;
    return make_generator("rocksdb-levels", sized);
  };
  return ContenderRuns::run(common, {{"a stream a level", "tags", 15}, {"off", "legacy"}}, options);
}

Result<FigureResult> run_settings(const FigureOptions& options) {
  FigureResult result;
  Measured most;
  std::string where;
  for (const int tree : kTrees) {
    for (const uint32_t tables : kTablesPerBlock) {
      SFS_ASSIGN(const ContenderRuns runs, run_tree(tree, tables, options));
      const std::string label = fmt::format("tree {} %, tables a block: {}", tree, tables);
      for (const size_t contender : {size_t{1}, size_t{0}})
        result.rows.push_back({label + ", " + runs.contenders()[contender].label, "WAF",
                               std::nullopt, runs.measured(contender, waf_of)});
      const Measured gain = percent_change(runs.relative(1, waf_of));
      if (!where.empty() && gain.mean <= most.mean) continue;
      most = gain;
      where = label;
    }
  }
  result.rows.insert(result.rows.begin(), {"the most lifetime of all settings", "% more",
                                           std::optional(kPublished), most});
  result.findings = {fmt::format("A stream a level gains most with {}.", where)};
  result.notes = {
      "The gain of a stream per level is at most (WAF without streams) − 1. A larger tree raises "
      "WAF without streams, and above a certain size also WAF with streams.",
      "A block that holds one table dies nearly as a whole, also without streams.",
      "choi-rocksdb counts a longer run on a device twice as large; its WAF is higher with streams "
      "and without."};
  return result;
}

}  // namespace

// NOLINTBEGIN(bugprone-suspicious-missing-comma): sentences longer than a line
Figure choi_rocksdb_settings() {
  return {
      .name = "choi-rocksdb-settings",
      .source = "Choi (Samsung), RocksDB",
      .shows = "lifetime gained by a stream a level, by size of the tree and tables a block",
      .unsaid = {"the device, its spare, how full it is, and the WAF without streams",
                 "sizes of tables and erase blocks"},
      .assumed = {"the preset enterprise-fdp and the generated tree of choi-rocksdb; 15 streams",
                  "copies stay in their stream's open block, or in a second one without streams",
                  "a table is as large as a memtable, so that the size of tables changes the "
                  "shape of the tree, too",
                  "6 capacities written, the last 60 % counted; no reads"},
      .seeds = 2,
      .scale = 512,
      .smallest = 512,
      .run = run_settings};
}
// NOLINTEND(bugprone-suspicious-missing-comma)

}  // namespace streamfs::lab::figures
