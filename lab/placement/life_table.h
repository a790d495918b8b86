// LifeTable estimates how long pages of one kind live. It counts deaths, and *exposures*: pages
// that reached an age. Ages are powers of two of host pages. A page that still lives thus counts
// for the ages that it has reached (Kaplan and Meier, J. American Statistical Association 53,
// 1958). Old counts fade by epochs.
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
  // Counts the ages that living pages have reached. Call it, learn() and fade() in this order at
  // the end of an epoch.
  void count_living(uint64_t clock);
  void learn();  // computes the estimates from the counts; may also be called within an epoch
  void fade();
  bool changed() const { return changed_; }  // by born() or died() since learn()

  // The mean binary logarithm of the whole lifetime, or of the time left at an age; negative if it
  // is not known. `weight`: the pages that were seen at that age.
  struct Estimate {
    double log2_life = -1;
    double weight = 0;
  };
  Estimate lifetime() const { return {mean_, weight_}; }
  Estimate left_at(uint64_t age) const;

 private:
  // Pages written in one epoch that are still alive. Their exposure is counted for the first
  // `ages_counted` ages.
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
