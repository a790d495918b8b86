// A life table with censoring: how long the pages of one context live (Kaplan and Meier 1958, by
// log2 age bins). Pages that are still alive count for the ages that they have passed. Without
// them, the table would take lifetimes for short, because short lives are the first that end.
//
// Ages are in pages written to the device in between. Bin j holds ages [2^j, 2^(j+1)); bin 0 also
// holds age 0, and the last bin all higher ages.
// Thread safety: none. Crash: memory only.
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

// For each bin: `entered`, the pages that reached it and of which it is known whether they died in
// it, and `deaths`, the pages that did. The sum for two contexts is the hazard of both together.
struct Hazard {
  std::array<double, kAgeBins> deaths{};
  std::array<double, kAgeBins> entered{};

  void add(const Hazard& other);
  void decay(double factor);
  double evidence() const;  // pages with a known outcome in the best-known bin
  // Returns the mean of log2(lifetime) by the survival curve; negative if nothing is known. Pages
  // that outlive the last known bin count as if they died in the bin after it.
  double mean_log2() const;
};

// The live pages of one context, in cohorts by time of birth, and the deaths that are not yet in
// the hazard. A cohort commits a bin to the hazard, deaths and survivors together, once its pages
// are old enough to have passed the bin. If deaths were committed at once, a young table would be
// biased towards short lives. Old cohorts are merged, so that their number grows with the logarithm
// of the device's age. Cohorts count the pages that are followed; each stands for `weight` pages.
class Cohorts {
 public:
  // Counts a birth in the epoch that began at `epoch_start`. Requires: it never decreases.
  void born(uint64_t epoch_start);
  // Counts the death of a page born at `birth`; does nothing if no cohort has it alive. If the
  // cohort has committed the bin already, corrects `known`.
  void died(uint64_t birth, uint64_t age, double weight, Hazard& known);
  // Stops following a live page, because fewer pages now stand for more each.
  void lost(uint64_t birth);
  // Halves the deaths that are not committed, because each page now stands for twice as many.
  void halve_deaths();
  // Ends an epoch at `now`: adds to `known` the bins that the cohorts have passed.
  void commit(uint64_t now, double weight, Hazard& known);
  // Stops watching the live pages; their committed observations stay.
  void forget() { cohorts_.clear(); }
  size_t size() const { return cohorts_.size(); }

 private:
  struct Cohort {
    uint64_t start = 0;
    uint64_t end = 0;  // 0: its epoch has not ended
    uint32_t alive = 0;
    uint32_t committed = 0;  // bins below are in the hazard
    std::array<uint32_t, kAgeBins> pending{};
    uint64_t waiting() const;  // deaths not committed yet
  };
  Cohort* find(uint64_t birth);  // null: no page of that cohort is alive
  static void commit_bins(Cohort& cohort, uint64_t now, double weight, Hazard& known);
  void merge(uint64_t now);

  std::vector<Cohort> cohorts_;  // oldest first
};

}  // namespace streamfs::classifier
