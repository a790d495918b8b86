// Kim 2015's synthetic workload as far as it is known: random writes on an eMMC on which files are
// made and deleted. The host reports deletions to the device, or does not.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "lab/figures/figure.h"

namespace streamfs::lab::figures {

enum class Told : uint8_t { kNothing, kTrim, kDiscard };

struct KimFiles {
  Told told = Told::kNothing;
  bool misaligned = false;     // every file begins in the middle of a mapped page
  double full = 0.9;           // share of the device for random writes and files
  double files = 0.04;         // share of the device for files
  uint32_t file_pages = 8;     // at most
  uint32_t discard_pages = 2;  // a discard frees only whole groups of so many pages
};

// Counts of the last 30 rounds. Their writes are the same for all setups, but for the one page more
// that a misaligned file takes.
struct KimRates {
  double mb_per_s = 0;  // of the random writes
  double erases = 0;
};

// Fills the device, and runs 80 rounds of the workload on it: half of the files are deleted, a 20th
// of the device is written at random, and the deleted files are written anew. Returns the rates by
// setup and seed. Errors: those of the device.
Result<std::vector<std::vector<KimRates>>> run_files(std::span<const KimFiles> setups,
                                                     const FigureOptions& options);

// Return the gain of `with` over `without` in %, in MB/s and in fewer erases. Both are in seed
// order.
Measured speed_gain(std::span<const KimRates> with, std::span<const KimRates> without);
Measured life_gain(std::span<const KimRates> with, std::span<const KimRates> without);

}  // namespace streamfs::lab::figures
