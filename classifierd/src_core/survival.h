// How long do the pages of one context live? A life table with censoring: pages still alive count
// for the ages they have passed, so that long lives are not mistaken for short ones only because
// the short ones are the first to be seen to end (Kaplan and Meier 1958, by log2 age bins).
//
// Unit of age: pages written to the device in between. Bin j holds ages [2^j, 2^(j+1)), bin 0 also
// age 0. Thread safety: none. Crash: nothing persistent.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace streamfs::classifier {

inline constexpr uint32_t kAgeBins = 26;

constexpr uint32_t age_bin(uint64_t age_pages) {
  const auto bin = static_cast<uint32_t>(std::bit_width(age_pages | 1)) - 1;
  return bin < kAgeBins ? bin : kAgeBins - 1;
}

// Deaths in each bin and the pages that entered it with a known outcome. Sums of hazards are the
// hazard of the union, which is how coarser contexts are made from finer ones.
struct Hazard {
  std::array<double, kAgeBins> deaths{};
  std::array<double, kAgeBins> entered{};

  void add(const Hazard& other);
  void decay(double factor);
  double evidence() const;  // pages with a known outcome in the best-known bin
  // Mean of log2(life) from the survival curve; those that outlive every known bin are put one
  // bin beyond. Negative if nothing is known.
  double mean_log2() const;
};

// The pages of one context that are alive, by time of birth, and the deaths whose bins are not yet
// fully observed. A cohort commits a bin, deaths and survivors together, once its pages have had
// the time to pass it: committing deaths at once would bias a young table towards short lives.
// Old cohorts are merged, so that their number grows with the logarithm of the device's age.
// Counts are of the pages that are followed; `weight` is how many each of these stands for.
class Cohorts {
 public:
  void born(uint64_t epoch_start);
  // `known` gets a late death in a bin that its cohort has committed already.
  void died(uint64_t birth, uint64_t age, double weight, Hazard& known);
  // Stops following a live page, because fewer pages now stand for more each.
  void lost(uint64_t birth);
  // From now on each page stands for twice as many; so the pending deaths are halved.
  void halve_deaths();
  // To be called at the end of an epoch.
  void commit(uint64_t now, double weight, Hazard& known);
  // Stops watching the live pages; their committed observations stay.
  void forget() { cohorts_.clear(); }
  size_t size() const { return cohorts_.size(); }

 private:
  struct Cohort {
    uint64_t start = 0;
    uint64_t end = 0;  // 0 = still taking births
    uint32_t alive = 0;
    uint32_t committed = 0;  // bins below are in the hazard
    std::array<uint32_t, kAgeBins> pending{};
    uint64_t waiting() const;  // deaths not committed yet
  };
  Cohort* find(uint64_t birth);  // null: of none that has a page alive
  static void commit_bins(Cohort& cohort, uint64_t now, double weight, Hazard& known);
  void merge(uint64_t now);

  std::vector<Cohort> cohorts_;  // oldest first
};

}  // namespace streamfs::classifier
