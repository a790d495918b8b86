// SepBIT (Wang et al., FAST'22): a host write goes to class 0 if the page that it overwrites lived
// shorter than ℓ, else to class 1. ℓ is the mean lifespan of 16 collected blocks of class 0,
// computed anew after every 16 of them, and infinite at first. Copies out of class 0 go to class 2,
// others by age: below 4ℓ to 3, below 16ℓ to 4, else to 5.
#pragma once

#include <limits>

#include "lab/placement/page_times.h"
#include "lab/placement/policy.h"

namespace streamfs::lab {

class SepBit final : public PlacementPolicy {
 public:
  explicit SepBit(const WorkloadFacts& facts) : written_at_(facts.footprint_pages) {}

  uint16_t classes() const override { return 6; }

  void prefetch(ssd::Lpn page) const override { written_at_.prefetch(page); }

  ssd::FrontierId for_write(const PageWrite& write, uint64_t clock) override {
    const bool short_lived = written_at_.known(write.page) &&
                             static_cast<double>(written_at_.since(write.page, clock)) < lifespan_;
    written_at_.set(write.page, clock);
    return short_lived ? 0 : 1;
  }

  ssd::FrontierId for_copy(ssd::Lpn page, ssd::FrontierId source, uint64_t clock) override {
    if (source == 0) return 2;
    const auto age = static_cast<double>(written_at_.since(page, clock));
    if (age < 4 * lifespan_) return 3;
    return age < 16 * lifespan_ ? 4 : 5;
  }

  void collected(ssd::FrontierId frontier, uint64_t opened_at, uint64_t clock) override {
    if (frontier != 0) return;
    sum_ += static_cast<double>(clock - opened_at);
    if (++collected_ < kWindow) return;
    lifespan_ = sum_ / kWindow;
    collected_ = 0;
    sum_ = 0;
  }

 private:
  static constexpr int kWindow = 16;

  PageTimes written_at_;
  double lifespan_ = std::numeric_limits<double>::infinity();
  double sum_ = 0;
  int collected_ = 0;
};

}  // namespace streamfs::lab
