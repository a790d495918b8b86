// Lee (Samsung), "LLD, FTL-Level Evaluation": random writes on the bare FTLs, and the four bars on
// a FAT volume. The source prints the sequential rates; its bars for random writes are a picture.
#include <fmt/format.h>

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

namespace streamfs::lab::figures {
namespace {

constexpr uint32_t kRequestPages = 2;

struct BareRates {
  double sequential_write = 0, random_write = 0, sequential_read = 0, random_read = 0;  // MB/s
};

// Measures the FTL alone, with pages of the device in order and at random.
class Bare {
 public:
  Bare(LeeDevice& device, uint64_t seed) : device_(device), random_(seed) {}

  Result<BareRates> measure() {
    const auto pages = device_.geometry().user_pages;
    const auto full = static_cast<uint32_t>(kLeeFull * pages), file = pages / 16;
    const auto in_order = [&](uint32_t at) { return device_.write_data(at, 1); };
    const auto at_random = [&](uint32_t at) {
      if (at % kRequestPages == 0) first_ = random_.below(file / 2) * kRequestPages;
      return device_.write_data(first_ + at % kRequestPages, 1);
    };
    BareRates rates;
    for (int pass = 0; pass < 3; ++pass) {  // the last pass is on flash that has been erased before
      SFS_ASSIGN(rates.sequential_write, rate(full, in_order));
    }
    SFS_ASSIGN(rates.sequential_read, rate(file, [&](uint32_t at) { return device_.read(at); }));
    SFS_ASSIGN(rates.random_read,
               rate(file, [&](uint32_t) { return device_.read(random_.below(file)); }));
    SFS_TRY(rate(pages / 2, at_random));
    SFS_ASSIGN(rates.random_write, rate(file, at_random));
    return rates;
  }

 private:
  template <typename Step>
  Result<double> rate(uint32_t pages, Step step) {
    const uint64_t began = device_.now_ns();
    for (uint32_t i = 0; i < pages; ++i)
      if (const int error = step(i); error != 0) return Error{error};
    return static_cast<double>(uint64_t{pages} * kLeePageBytes) * 1e3 /
           static_cast<double>(device_.now_ns() - began);
  }

  LeeDevice& device_;
  Random random_;
  uint32_t first_ = 0;
};

Result<BareRates> bare(bool hybrid, uint32_t scale, uint64_t seed) {
  SFS_ASSIGN(const std::unique_ptr<LeeDevice> device,
             LeeDevice::make({.hybrid = hybrid, .scale = scale}));
  return Bare(*device, seed).measure();
}

// Writes at random into one file of a volume.
Result<double> on_volume(LeeSetup setup, uint64_t seed) {
  SFS_ASSIGN(const std::unique_ptr<LeeVolume> volume, LeeVolume::make(setup, kLeeFull - kLeeFile));
  FatVolume::File file = 0;
  const uint32_t clusters = volume->clusters(kLeeFile);
  SFS_TRY(volume->write_file(clusters, kLeeRecord, file));
  SFS_TRY(volume->age(file, seed));
  return volume->write_at_random(file, clusters, seed);
}

std::string beside_lbftl(const std::vector<std::vector<BareRates>>& rates) {
  const auto times = [&](double BareRates::* rate) {
    return rounded(over_seeds(rates[1], rate).mean / over_seeds(rates[0], rate).mean);
  };
  return fmt::format(
      "hFTL has {} times LBFTL's rate of sequential writes, {} times of sequential reads, {} times "
      "of random reads and {} times of random writes.",
      times(&BareRates::sequential_write), times(&BareRates::sequential_read),
      times(&BareRates::random_read), times(&BareRates::random_write));
}

Result<FigureResult> run_randwrite(const FigureOptions& options) {
  SFS_ASSIGN(const auto rates, over_setups<BareRates>(options, 2, [&](size_t ftl, uint64_t seed) {
               return bare(ftl == 1, options.scale, seed);
             }));
  SFS_ASSIGN(const auto volumes, over_bars<double>(options, on_volume));
  FigureResult result;
  const auto row = [&](size_t ftl, double BareRates::* rate, const char* what,
                       std::optional<double> paper) {
    result.rows.push_back({std::string(ftl == 0 ? "LBFTL" : "hFTL") + ", " + what, "MB/s", paper,
                           over_seeds(rates[ftl], rate)});
  };
  for (size_t ftl = 2; ftl-- > 0;) row(ftl, &BareRates::random_write, "random write", {});
  for (size_t ftl = 0; ftl < 2; ++ftl)
    row(ftl, &BareRates::sequential_write, "sequential write", 1.62);
  for (size_t ftl = 0; ftl < 2; ++ftl)
    row(ftl, &BareRates::sequential_read, "sequential read", 4.16);
  for (size_t ftl = 0; ftl < 2; ++ftl) row(ftl, &BareRates::random_read, "random read", 4.09);
  for (size_t bar = 0; bar < volumes.size(); ++bar)
    result.rows.push_back(
        {name_of(lee_bars()[bar]) + ", random write on FAT", "MB/s", {}, over_seeds(volumes[bar])});
  result.findings = {beside_lbftl(rates)};
  result.notes = {
      "In the source, reads and sequential writes are alike on both FTLs. Its FTLs add 5 % to the "
      "driver's time for a page written; ours add an erase and, on hFTL, two words of 10 µs.",
      "Merges limit random writes on LBFTL: each log block of our LBFTL holds the pages of one "
      "block, so a write of 4 KiB can cost the copy of a block."};
  return result;
}

}  // namespace

Figure lee_randwrite() {
  return {
      .name = "lee-randwrite",
      .source = "Lee (Samsung), FTL-level evaluation",
      .shows =
          "reads and writes of the log-block FTL and the hybrid one, with and without FAT "
          "metadata on NAND",
      .unsaid = {"the numbers of its bars for random writes; they are only drawn",
                 "request size, how full the device is, and where random writes go",
                 "log blocks and spare blocks of either FTL, and the kind of log-block FTL"},
      .assumed = {"K9G8G08U0M: 4,096 blocks of 128 pages of 2 KiB; one operation at a time; pages, "
                  "copies included, at the driver's rates (4.25 and 1.7 MB/s); erases 1.4 ms; "
                  "words of PRAM 10 µs to program and 80 ns to read",
                  "random writes of 4 KiB into a 16th of a device that is 70 % full, as many as "
                  "fill it once; a 32nd of all blocks is spare; LBFTL uses all of them but one as "
                  "log blocks, each for one block (Kim et al. 2002)",
                  "on FAT, each write changes its directory entry by a transaction through a log"},
      .seeds = 3,
      .scale = 1,
      .smallest = 16,
      .run = run_randwrite};
}

}  // namespace streamfs::lab::figures
