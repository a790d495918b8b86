// The device of Lee (Samsung): 1 GB of MLC NAND on a slow bus, with a log-block FTL or the hybrid
// one, and a FAT volume on it whose metadata go to NAND or to PRAM.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "lab/figures/figure.h"
#include "lab/figures/parallel.h"
#include "lab/workload/fat_volume.h"
#include "pmem/region.h"
#include "ssd/counters.h"
#include "ssd/ftl/hybrid.h"
#include "ssd/ftl/log_block.h"
#include "ssd/geometry.h"
#include "ssd/media/pram_blocks.h"
#include "ssd/media/serial_nand.h"

namespace streamfs::lab::figures {

inline constexpr uint32_t kLeePageBytes = 2048;
inline constexpr double kLeeFull = 0.7, kLeeFile = 1.0 / 16;  // of the device
inline constexpr uint32_t kLeeRecord = 4;                     // clusters: 16 KiB

struct LeeSetup {
  bool hybrid = false;     // hFTL, else LBFTL
  bool separated = false;  // FSMS: the metadata in PRAM
  bool selective = true;   // PRAM programs changed words only
  uint32_t scale = 1;
};
std::string name_of(const LeeSetup& setup);  // "hFTL + FSMS"
const std::vector<LeeSetup>& lee_bars();     // the four, in the source's order

// Calls run(setup, seed) for each bar with every seed.
template <typename T, typename Run>
Result<std::vector<std::vector<T>>> over_bars(const FigureOptions& options, const Run& run) {
  return over_setups<T>(options, lee_bars().size(), [&](size_t bar, uint64_t seed) {
    LeeSetup setup = lee_bars()[bar];
    setup.scale = options.scale;
    return run(setup, seed);
  });
}

// Adds a row for each bar, from the last one back. `runs` is in the order of the bars.
template <typename Run, typename Value>
void add_bars(FigureResult& result, const std::vector<std::vector<Run>>& runs, const Value& value,
              const std::string& what, const std::string& unit) {
  for (size_t bar = runs.size(); bar-- > 0;)
    result.rows.push_back(
        {name_of(lee_bars()[bar]) + ", " + what, unit, {}, over_seeds(runs[bar], value)});
}

// Returns the geometry of K9G8G08U0M: 4096 blocks of 128 pages; a 32nd of them is spare.
// Errors: EINVAL for a scale that leaves too few blocks.
Result<ssd::Geometry> lee_geometry(uint32_t scale);
FatShape lee_volume(const ssd::Geometry& geometry);

class LeeDevice final : public FatDevice {
 public:
  // Errors: those of lee_geometry() and of the FTL.
  static Result<std::unique_ptr<LeeDevice>> make(const LeeSetup& setup);

  const ssd::Geometry& geometry() const { return geometry_; }
  int write_metadata(uint32_t page, ConstBytes now) override;
  int write_data(uint32_t first, uint32_t pages) override;
  void trim(uint32_t first, uint32_t pages) override;
  // Takes the time of a read; none for a page without data.
  int read(uint32_t page);

  // Makes the FTL anew on the same flash, as at power-up. Returns the time of that in ns. Errors:
  // those of the FTL's recovery.
  Result<uint64_t> restart();

  // Returns the total time of all operations so far. restart() drops the time of the words that the
  // hybrid FTL read before.
  uint64_t now_ns() const;
  const ssd::Counters& counters() const { return counters_; }
  const ssd::PramBlocks::Counts& metadata() const { return blocks_->counts(); }
  uint64_t ftl_words() const { return ftl_region_->counters().words_programmed; }
  uint64_t ram_bytes() const;
  uint64_t ftl_pram_bytes() const { return setup_.hybrid ? ftl_region_->size() : 0; }
  uint64_t metadata_pram_bytes() const { return setup_.separated ? metadata_region_->size() : 0; }

 private:
  LeeDevice(const LeeSetup& setup, const ssd::Geometry& geometry);
  Result<void> make_ftl(bool first);
  int write(uint32_t first, uint32_t pages);
  uint64_t words_read() const;

  const LeeSetup setup_;
  const ssd::Geometry geometry_;
  ssd::Counters counters_;
  ssd::SerialNand nand_;
  std::unique_ptr<pmem::Region> ftl_region_, metadata_region_;
  std::unique_ptr<ssd::PramBlocks> blocks_;
  std::variant<std::unique_ptr<ssd::LogBlockFtl>, std::unique_ptr<ssd::HybridFtl>> ftl_;
};

// A FAT volume on a device. make() fills the share `full` with files that stay.
class LeeVolume {
 public:
  // Errors: those of the device and of the volume.
  static Result<std::unique_ptr<LeeVolume>> make(const LeeSetup& setup, double full);

  LeeDevice& device() { return *device_; }
  // Returns the clusters in this share of the device.
  uint32_t clusters(double share) const;

  // These return the MB/s of their writes, and the errors of the volume. write_file() makes a file
  // and rewrite() writes all of one, in requests of `record` clusters. write_at_random() overwrites
  // random single clusters.
  Result<double> write_file(uint32_t clusters, uint32_t record, FatVolume::File& file);
  Result<double> rewrite(FatVolume::File file, uint32_t record);
  Result<double> write_at_random(FatVolume::File file, uint64_t requests, uint64_t seed);
  Result<void> remove(FatVolume::File file, bool trim);
  // Writes half of the device's size at random into a file, so that no flash is left unused.
  Result<void> age(FatVolume::File file, uint64_t seed);

 private:
  LeeVolume(std::unique_ptr<LeeDevice> device, FatVolume volume)
      : device_(std::move(device)), volume_(std::move(volume)) {}
  double mb_per_s(uint64_t clusters, uint64_t since_ns) const;

  std::unique_ptr<LeeDevice> device_;
  FatVolume volume_;
};

}  // namespace streamfs::lab::figures
