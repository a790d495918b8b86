// Lee (Samsung), "No scanning is required": the time of power-up by the size of the device.
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/figures/figure.h"
#include "lab/figures/figures.h"
#include "lab/figures/lee_device.h"
#include "lab/figures/parallel.h"
#include "lab/workload/fat_volume.h"
#include "ssd/geometry.h"

namespace streamfs::lab::figures {
namespace {

constexpr std::array<uint32_t, 4> kStartupParts = {8, 4, 2, 1};  // of the largest device

Result<double> startup_ms(const LeeSetup& setup, uint64_t seed) {
  SFS_ASSIGN(const std::unique_ptr<LeeVolume> volume, LeeVolume::make(setup, kLeeFull - kLeeFile));
  FatVolume::File file = 0;
  const uint32_t clusters = volume->clusters(kLeeFile);
  SFS_TRY(volume->write_file(clusters, kLeeRecord, file));
  SFS_TRY(volume->write_at_random(file, clusters / 4, seed));
  SFS_ASSIGN(const uint64_t ns, volume->device().restart());
  return static_cast<double>(ns) / 1e6;
}

Result<FigureResult> run_startup(const FigureOptions& options) {
  const Result<ssd::Geometry> smallest = lee_geometry(options.scale * kStartupParts.front());
  if (!smallest.ok())
    return Error{EINVAL, fmt::format("its smallest device, an {}th of the largest: {}",
                                     kStartupParts.front(), smallest.error().context)};
  const auto start = [&](size_t i, uint64_t seed) {
    return startup_ms(
        {.hybrid = i % 2 == 1, .separated = true, .scale = options.scale * kStartupParts[i / 2]},
        seed);
  };
  SFS_ASSIGN(const auto ms, over_setups<double>(options, 2 * kStartupParts.size(), start));
  FigureResult result;
  result.along = "MiB of NAND";
  result.height = "ms to start";
  for (size_t hybrid = 2; hybrid-- > 0;) {
    Curve curve{.label = hybrid == 1 ? "hFTL" : "LBFTL", .points = {}};
    for (size_t part = kStartupParts.size(); part-- > 0;) {
      const double mib = 1024.0 / options.scale / kStartupParts[part];
      const Measured measured = over_seeds(ms[2 * part + hybrid]);
      result.rows.push_back(
          {fmt::format("{}, {} of the device", curve.label,
                       kStartupParts[part] == 1 ? "all" : fmt::format("1/{}", kStartupParts[part])),
           "ms",
           {},
           measured});
      curve.points.insert(curve.points.begin(), {mib, measured.mean});
    }
    result.curves.push_back(std::move(curve));
  }
  result.notes = {
      "hFTL reads a few words of PRAM and searches its two open blocks for their ends, which takes "
      "the same time on any device. LBFTL reads at least two spare areas of each block and all "
      "spare areas of a log block."};
  return result;
}

}  // namespace

Figure lee_startup() {
  return {.name = "lee-startup",
          .source = "Lee (Samsung), implementation of hybrid FTL",
          .shows =
              "the time to start after power-up: constant without a scan, growing with the device "
              "with one",
          .unsaid = {"how long either takes",
                     "whether LBFTL keeps a checkpoint on NAND to shorten its scan"},
          .assumed = {"LBFTL finds its tables in the spare areas alone, without a checkpoint; each "
                      "spare area costs a read of 60 µs and its share of the driver's time",
                      "devices of an eighth to the whole of 1 GB, used as in lee-iozone"},
          .seeds = 3,
          .scale = 1,
          .smallest = 2,
          .run = run_startup};
}

}  // namespace streamfs::lab::figures
