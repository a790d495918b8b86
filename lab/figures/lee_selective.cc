// Lee (Samsung), "Selective Programming": how many words of metadata blocks change.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/lee_device.h"
#include "lab/figures/parallel.h"
#include "lab/figures/report.h"
#include "lab/workload/fat_volume.h"
#include "ssd/media/pram_blocks.h"

namespace streamfs::lab::figures {
namespace {

constexpr uint32_t kSelectiveFiles = 200, kFewestFiles = 20;            // made and deleted
constexpr std::array<uint32_t, 4> kSelectiveRecords = {1, 4, 16, 256};  // clusters of a transaction

struct SelectiveRun {
  ssd::PramBlocks::Counts counts;
  double mb_per_s = 0;
};

ssd::PramBlocks::Counts difference_of(const ssd::PramBlocks::Counts& now,
                                      const ssd::PramBlocks::Counts& before) {
  ssd::PramBlocks::Counts counts = now;
  counts.blocks -= before.blocks;
  counts.words -= before.words;
  counts.programmed -= before.programmed;
  counts.sectors -= before.sectors;
  for (size_t i = 0; i < counts.changed.size(); ++i) counts.changed[i] -= before.changed[i];
  return counts;
}

// Writes files, overwrites them in part and deletes them.
Result<SelectiveRun> files_that_come_and_go(const LeeSetup& setup, uint32_t record, uint64_t seed) {
  SFS_ASSIGN(const std::unique_ptr<LeeVolume> volume, LeeVolume::make(setup, kLeeFull - kLeeFile));
  const LeeDevice& device = volume->device();
  const ssd::PramBlocks::Counts before = device.metadata();
  const uint64_t began = device.now_ns();
  Random random(seed);
  uint64_t clusters = 0;
  const uint32_t files = std::max(kSelectiveFiles / setup.scale, kFewestFiles);
  for (uint32_t i = 0; i < files; ++i) {
    FatVolume::File file = 0;
    const uint32_t size = 1 + random.below(512);
    SFS_TRY(volume->write_file(size, record, file));
    SFS_TRY(volume->write_at_random(file, size / 4, seed));
    SFS_TRY(volume->remove(file, true));
    clusters += size + size / 4;
  }
  const double bytes = static_cast<double>(clusters) * 2 * kLeePageBytes;
  return SelectiveRun{difference_of(device.metadata(), before),
                      bytes * 1e3 / static_cast<double>(device.now_ns() - began)};
}

double share_of_sectors(const ssd::PramBlocks::Counts& counts, size_t size) {
  const double words = static_cast<double>(counts.sectors) * ssd::PramBlocks::kSectorBytes /
                       ssd::PramBlocks::kWordBytes[size];
  return 100 * static_cast<double>(counts.changed[size]) / words;
}

double share_of_blocks(const ssd::PramBlocks::Counts& counts) {
  return 100 * static_cast<double>(counts.changed.back()) / static_cast<double>(counts.words);
}

Result<FigureResult> run_selective(const FigureOptions& options) {
  const auto measure = [&](bool selective) {
    const LeeSetup setup{
        .hybrid = true, .separated = true, .selective = selective, .scale = options.scale};
    return over_setups<SelectiveRun>(
        options, kSelectiveRecords.size(), [&](size_t record, uint64_t seed) {
          return files_that_come_and_go(setup, kSelectiveRecords[record], seed);
        });
  };
  SFS_ASSIGN(const auto with, measure(true));
  SFS_ASSIGN(const auto without, measure(false));
  FigureResult result;
  const auto row = [&](const std::string& label, const char* unit, std::optional<double> paper,
                       const std::vector<SelectiveRun>& runs, auto value) {
    result.rows.push_back({label, unit, paper, over_seeds(runs, value)});
  };
  const auto kib = [&](size_t record) {
    return kSelectiveRecords[record] * 2 * kLeePageBytes / 1024;
  };
  const auto sectors = [&](size_t record, size_t size) {
    row(fmt::format("words of {} bytes changed, of a sector, {} KiB a transaction",
                    ssd::PramBlocks::kWordBytes[size], kib(record)),
        "%", 16, with[record],
        [&](const SelectiveRun& run) { return share_of_sectors(run.counts, size); });
  };
  for (const size_t record : {1U, 0U, 2U, 3U}) sectors(record, 2);
  for (const size_t size : {0U, 1U}) sectors(1, size);
  row("words of 8 bytes changed, of a page of 2 KiB, 16 KiB a transaction", "%", 16, with[1],
      [](const SelectiveRun& run) { return share_of_blocks(run.counts); });
  const auto per_block = [](const SelectiveRun& run) {
    return static_cast<double>(run.counts.programmed) / static_cast<double>(run.counts.blocks);
  };
  row("words programmed for a block, selectively", "words", {}, with[1], per_block);
  row("words programmed for a block, all of it", "words", {}, without[1], per_block);
  row("writing, selectively", "MB/s", {}, with[1],
      [](const SelectiveRun& run) { return run.mb_per_s; });
  row("writing, whole blocks", "MB/s", {}, without[1],
      [](const SelectiveRun& run) { return run.mb_per_s; });
  const auto share = [&](size_t record, size_t size) {
    return rounded(over_seeds(with[record], [&](const SelectiveRun& run) {
                     return share_of_sectors(run.counts, size);
                   }).mean);
  };
  result.findings = {
      fmt::format("The share changed goes from {} % with {} KiB a transaction to {} % with {} KiB.",
                  share(0, 2), kib(0), share(3, 2), kib(3)),
      fmt::format(
          "With 16 KiB the share is {} % in words of {} bytes and {} % in words of {} bytes.",
          share(1, 0), ssd::PramBlocks::kWordBytes[0], share(1, 2),
          ssd::PramBlocks::kWordBytes[2])};
  result.notes = {
      "Without selective programming, PRAM is slower than NAND: 256 words of 10 µs against 1.2 ms "
      "for a page of the same size."};
  return result;
}

}  // namespace

Figure lee_selective() {
  return {.name = "lee-selective",
          .source = "Lee (Samsung), selective programming",
          .shows =
              "the share of a metadata block's words that change, and the savings if only these "
              "are programmed",
          .unsaid = {"the workload behind its 16 %", "the size of a metadata block, and of a word",
                     "how much one transaction writes"},
          .assumed =
              {"200 files of 4 KiB to 2 MiB, one after the other written, overwritten by a quarter "
               "and deleted; the bytes of log, directories and two FATs are measured, not assumed",
               "a word is 8 bytes, as in the rest of this project; a sector is 512 bytes; only "
               "changed sectors count"},
          .seeds = 3,
          .scale = 1,
          .smallest = 16,
          .run = run_selective};
}

}  // namespace streamfs::lab::figures
