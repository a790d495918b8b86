// How long pages of one kind live: deaths and exposures by age, in powers of two of host pages, so
// that pages still alive count for as long as they have been seen to live (Kaplan and Meier, J.
// American Statistical Association 53, 1958). Old evidence fades by epochs.
// Thread safety: none. Memory: some 350 bytes, and 12 for each epoch with pages alive.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace streamfs::lab {

class LifeTable {
 public:
  static constexpr uint32_t kEpochPages = 65536;
  static constexpr int kAges = 26;
  static int age_of(uint64_t pages);  // floor of the binary logarithm, at most kAges − 1

  void born(uint64_t clock);
  void died(uint64_t born_at, uint64_t clock);
  // At the end of an epoch, then learn(), then fade().
  void count_living(uint64_t clock);
  void learn();
  void fade();
  bool changed() const { return changed_; }

  // Mean binary logarithm of the whole lifetime, and of what is left at an age. A negative one is
  // not known. Weight: pages seen at that age.
  struct Estimate {
    double log2_life = -1;
    double weight = 0;
  };
  Estimate lifetime() const { return {mean_, weight_}; }
  Estimate left_at(uint64_t age) const;

 private:
  // Pages of one epoch that are still alive; their exposure is counted for the first ages.
  struct Cohort {
    uint32_t epoch, alive;
    uint8_t ages_counted;
  };

  std::array<float, kAges> deaths_{}, exposed_{};
  std::array<float, kAges> left_{};  // by age: mean binary logarithm of what is left
  std::vector<Cohort> cohorts_;      // oldest first
  double mean_ = -1, weight_ = 0;
  bool changed_ = false;
};

}  // namespace streamfs::lab
