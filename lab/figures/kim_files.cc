#include "lab/figures/kim_files.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/types.h"
#include "lab/figures/figure.h"
#include "lab/figures/kim_device.h"
#include "lab/figures/parallel.h"
#include "ssd/counters.h"
#include "ssd/geometry.h"

namespace streamfs::lab::figures {
namespace {

constexpr uint32_t kRoundShare = 20;  // a round writes the device's size divided by this
constexpr int kChurnBefore = 50, kChurnRounds = 30;

class FileChurn {
 public:
  FileChurn(const KimFiles& setup, uint64_t seed, KimDevice& device)
      : setup_(setup), device_(device), random_(seed) {
    const auto pages = static_cast<double>(device.geometry().user_pages);
    end_ = static_cast<uint32_t>(setup.full * pages);
    database_ = static_cast<uint32_t>((setup.full - setup.files) * pages);
    for (uint32_t at = database_;;) {
      const uint32_t size = 1 + random_.below(setup.file_pages);
      if (at + size + 1 > end_) break;
      files_.push_back({at, size});
      at += size;
    }
  }

  Result<KimRates> run() {
    for (uint32_t page = 0; page < database_; ++page) SFS_TRY(device_.write(page, 1));
    SFS_TRY(write_missing());
    for (int i = 0; i < kChurnBefore; ++i) SFS_TRY(round());
    const uint64_t erases = device_.counters().erases;
    random_ns_ = random_pages_ = 0;
    for (int i = 0; i < kChurnRounds; ++i) SFS_TRY(round());
    return KimRates{.mb_per_s = static_cast<double>(random_pages_ * ssd::kPageBytes) * 1e3 /
                                static_cast<double>(random_ns_),
                    .erases = static_cast<double>(device_.counters().erases - erases)};
  }

 private:
  struct File {
    uint32_t first = 0, pages = 0;
    bool there = false;
  };

  // A misaligned file also ends in the middle of a page, so its neighbours' halves are written
  // again.
  Result<void> write_missing() {
    for (File& file : files_) {
      if (file.there) continue;
      SFS_TRY(device_.write(file.first, file.pages + (setup_.misaligned ? 1U : 0U)));
      file.there = true;
    }
    return {};
  }

  void remove(File& file) {
    file.there = false;
    if (setup_.told == Told::kNothing) return;
    uint64_t first = file.first + (setup_.misaligned ? 1U : 0U), end = file.first + file.pages;
    if (setup_.told == Told::kDiscard) {
      first = round_up(first, setup_.discard_pages);
      end = round_down(end, setup_.discard_pages);
    }
    for (uint64_t page = first; page < end; ++page) device_.trim(static_cast<ssd::Lpn>(page));
  }

  Result<void> round() {
    for (File& file : files_)
      if (random_.below(2) == 0) remove(file);
    const uint64_t began = device_.counters().saturated_ns;
    const uint32_t pages = device_.geometry().user_pages / kRoundShare;
    for (uint32_t i = 0; i < pages; ++i) SFS_TRY(device_.write(random_.below(database_), 1));
    random_ns_ += device_.counters().saturated_ns - began;
    random_pages_ += pages;
    return write_missing();
  }

  const KimFiles setup_;
  KimDevice& device_;
  Random random_;
  uint32_t database_ = 0, end_ = 0;
  std::vector<File> files_;
  uint64_t random_ns_ = 0, random_pages_ = 0;
};

template <typename Gain>
Measured gain_over_seeds(std::span<const KimRates> with, std::span<const KimRates> without,
                         Gain gain) {
  std::vector<double> gains;
  for (size_t i = 0; i < with.size(); ++i) gains.push_back(100 * (gain(with[i], without[i]) - 1));
  return over_seeds(gains);
}

}  // namespace

Result<std::vector<std::vector<KimRates>>> run_files(std::span<const KimFiles> setups,
                                                     const FigureOptions& options) {
  return over_setups<KimRates>(options, setups.size(),
                               [&](size_t setup, uint64_t seed) -> Result<KimRates> {
                                 SFS_ASSIGN(const std::unique_ptr<KimDevice> device,
                                            KimDevice::make({.scale = options.scale}));
                                 return FileChurn(setups[setup], seed, *device).run();
                               });
}

Measured speed_gain(std::span<const KimRates> with, std::span<const KimRates> without) {
  return gain_over_seeds(
      with, without, [](const KimRates& a, const KimRates& b) { return a.mb_per_s / b.mb_per_s; });
}

Measured life_gain(std::span<const KimRates> with, std::span<const KimRates> without) {
  return gain_over_seeds(with, without,
                         [](const KimRates& a, const KimRates& b) { return b.erases / a.erases; });
}

}  // namespace streamfs::lab::figures
