// Lee (Samsung), "Life Span and Implementation Cost": erases, DRAM and PRAM of the four setups.
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/lee_device.h"
#include "lab/workload/fat_volume.h"

namespace streamfs::lab::figures {
namespace {

struct LeeCost {
  double sequential = 0, random = 0;  // erases for each MiB written
  double ram_kib = 0, ftl_pram_mib = 0, metadata_pram_mib = 0;
};

Result<LeeCost> cost_of(const LeeSetup& setup, uint64_t seed) {
  SFS_ASSIGN(const std::unique_ptr<LeeVolume> volume, LeeVolume::make(setup, kLeeFull - kLeeFile));
  const LeeDevice& device = volume->device();
  const uint32_t clusters = volume->clusters(kLeeFile);
  const double mib = clusters / 256.0;  // clusters have 4 KiB
  LeeCost cost;
  FatVolume::File old = 0, file = 0;
  SFS_TRY(volume->write_file(clusters, kLeeRecord, old));
  SFS_TRY(volume->age(old, seed));
  SFS_TRY(volume->remove(old, true));
  uint64_t before = device.counters().erases;
  SFS_TRY(volume->write_file(clusters, kLeeRecord, file));
  SFS_TRY(volume->rewrite(file, kLeeRecord));
  SFS_TRY(volume->remove(file, true));
  cost.sequential = static_cast<double>(device.counters().erases - before) / (2 * mib);
  SFS_TRY(volume->write_file(clusters, kLeeRecord, file));
  before = device.counters().erases;
  SFS_TRY(volume->write_at_random(file, clusters, seed));
  cost.random = static_cast<double>(device.counters().erases - before) / mib;
  const double gib = static_cast<double>(device.geometry().physical_pages()) * kLeePageBytes / kGiB;
  cost.ram_kib = static_cast<double>(device.ram_bytes()) / 1024;
  cost.ftl_pram_mib = static_cast<double>(device.ftl_pram_bytes()) / kMiB / gib;
  cost.metadata_pram_mib = static_cast<double>(device.metadata_pram_bytes()) / kMiB / gib;
  return cost;
}

Result<FigureResult> run_erases(const FigureOptions& options) {
  SFS_ASSIGN(const auto costs, over_bars<LeeCost>(options, cost_of));
  FigureResult result;
  add_bars(result, costs, &LeeCost::random, "random writes", "erases/MiB");
  add_bars(result, costs, &LeeCost::sequential, "write, rewrite and delete", "erases/MiB");
  const LeeCost &log_block = costs.front()[0], &both = costs.back()[0];
  result.rows.push_back({"LBFTL, DRAM", "KiB", {}, {log_block.ram_kib}});
  result.rows.push_back({"hFTL, DRAM", "KiB", {}, {both.ram_kib}});
  result.rows.push_back({"hFTL, PRAM for 1 GiB of NAND", "MiB", 2.5, {both.ftl_pram_mib}});
  result.rows.push_back({"FSMS, PRAM for 1 GiB of NAND", "MiB", 2, {both.metadata_pram_mib}});
  result.notes = {
      "hFTL's PRAM holds four bytes and a bit a page, and a word a block. FSMS's PRAM holds both "
      "FATs, and the log and directories of a small volume.",
      "hFTL has no block map in DRAM: it keeps two open blocks there, and nothing that grows with "
      "the device. LBFTL needs the block map, the tables of its log blocks and a bit a page, which "
      "a log-block FTL without trim can do without."};
  return result;
}

}  // namespace

Figure lee_erase() {
  return {.name = "lee-erase",
          .source = "Lee (Samsung), life span and implementation cost",
          .shows = "erases under IOzone, and the DRAM and PRAM of each combination",
          .unsaid = {"the numbers of its bars for erases and DRAM; they are only drawn",
                     "the content of hFTL's PRAM beside the map"},
          .assumed = {"workload as lee-iozone, device as lee-randwrite",
                      "DRAM as a small controller packs it: 2 bytes a block, 1 byte a page of a "
                      "log block, a bit a page for trims"},
          .seeds = 3,
          .scale = 1,
          .smallest = 16,
          .run = run_erases};
}

}  // namespace streamfs::lab::figures
