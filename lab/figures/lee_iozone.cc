// Lee (Samsung), "File System Level Evaluations": IOzone on the four combinations. The source's
// bars are pictures without numbers.
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/lee_device.h"
#include "lab/workload/fat_volume.h"

namespace streamfs::lab::figures {
namespace {

// IOzone's tests, in its order.
struct IozoneRates {
  double write = 0, rewrite = 0, random = 0;  // MB/s
};

Result<IozoneRates> iozone(const LeeSetup& setup, uint64_t seed) {
  SFS_ASSIGN(const std::unique_ptr<LeeVolume> volume, LeeVolume::make(setup, kLeeFull - kLeeFile));
  IozoneRates rates;
  FatVolume::File old = 0, file = 0;
  const uint32_t clusters = volume->clusters(kLeeFile);
  SFS_TRY(volume->write_file(clusters, kLeeRecord, old));
  SFS_TRY(volume->age(old, seed));
  SFS_TRY(volume->remove(old, true));
  SFS_ASSIGN(rates.write, volume->write_file(clusters, kLeeRecord, file));
  SFS_ASSIGN(rates.rewrite, volume->rewrite(file, kLeeRecord));
  SFS_ASSIGN(rates.random, volume->write_at_random(file, clusters, seed));
  return rates;
}

Result<FigureResult> run_iozone(const FigureOptions& options) {
  SFS_ASSIGN(const auto rates, over_bars<IozoneRates>(options, iozone));
  FigureResult result;
  add_bars(result, rates, &IozoneRates::random, "random write", "MB/s");
  add_bars(result, rates, &IozoneRates::write, "sequential write", "MB/s");
  add_bars(result, rates, &IozoneRates::rewrite, "sequential rewrite", "MB/s");
  result.notes = {
      "lee-randwrite has the sequential writes of both FTLs without a filesystem. With FAT's "
      "metadata on NAND, a record of 16 KiB costs its eight pages and one page each of the log, "
      "the directory and both FATs. On LBFTL these metadata pages are rewritten again and again "
      "and fill log blocks that must be merged."};
  return result;
}

}  // namespace

Figure lee_iozone() {
  return {.name = "lee-iozone",
          .source = "Lee (Samsung), file-system-level evaluation",
          .shows = "IOzone's write, rewrite and random write on a FAT volume",
          .unsaid = {"the numbers of its bars; they are only drawn", "file and record sizes",
                     "how often TFS4 writes metadata, and how full the volume is"},
          .assumed =
              {"a file of a 16th of the device on a volume that is 70 % full; records of 16 KiB in "
               "order and of 4 KiB at random, as many as fill the file once; before that, another "
               "such file is overwritten at random by half of the device's size and deleted",
               "FAT32 with clusters of 4 KiB and two FATs; each record is a transaction: the log, "
               "then every changed metadata page, written through",
               "device as lee-randwrite"},
          .seeds = 3,
          .scale = 1,
          .smallest = 16,
          .run = run_iozone};
}

}  // namespace streamfs::lab::figures
