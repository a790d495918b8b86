#include "lab/placement/life_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace streamfs::lab {
namespace {

constexpr float kFade = 0.7F;
constexpr float kSeen = 1e-3F;  // less exposure than this is none

// Return the middle of an age, and the rest of a life that ends in the middle of `death`.
double middle_of(int age) {
  return std::exp2(age + 0.5);
}
double log2_left(int age, int death) {
  return death == age ? age - 1 : std::log2(middle_of(death) - middle_of(age));
}

}  // namespace

int LifeTable::age_of(uint64_t pages) {
  return pages == 0 ? 0 : std::min(static_cast<int>(std::bit_width(pages)) - 1, kAges - 1);
}

void LifeTable::born(uint64_t clock) {
  const auto epoch = static_cast<uint32_t>(clock / kEpochPages);
  if (cohorts_.empty() || cohorts_.back().epoch != epoch) cohorts_.push_back({epoch, 0, 0});
  ++cohorts_.back().alive;
  changed_ = true;
}

void LifeTable::died(uint64_t born_at, uint64_t clock) {
  const auto epoch = static_cast<uint32_t>(born_at / kEpochPages);
  const auto cohort = std::ranges::lower_bound(cohorts_, epoch, {}, &Cohort::epoch);
  int counted = 0;
  if (cohort != cohorts_.end() && cohort->epoch == epoch && cohort->alive > 0) {
    --cohort->alive;
    counted = cohort->ages_counted;
  }
  const int age = age_of(clock - born_at);
  for (int i = counted; i <= age; ++i) exposed_[static_cast<size_t>(i)] += 1;
  deaths_[static_cast<size_t>(age)] += 1;
  changed_ = true;
}

void LifeTable::count_living(uint64_t clock) {
  for (Cohort& cohort : cohorts_) {
    const uint64_t middle = uint64_t{cohort.epoch} * kEpochPages + kEpochPages / 2;
    const int reached = age_of(clock > middle ? clock - middle : 0) + 1;
    for (int i = cohort.ages_counted; i < reached; ++i)
      exposed_[static_cast<size_t>(i)] += static_cast<float>(cohort.alive);
    cohort.ages_counted = static_cast<uint8_t>(std::max<int>(cohort.ages_counted, reached));
  }
  std::erase_if(cohorts_, [](const Cohort& cohort) { return cohort.alive == 0; });
}

// Pages that outlive every age seen are assumed to die in the age after the next.
void LifeTable::learn() {
  changed_ = false;
  int last = kAges - 1;
  while (last >= 0 && exposed_[static_cast<size_t>(last)] <= kSeen) --last;
  mean_ = -1;
  weight_ = last < 0 ? 0 : *std::ranges::max_element(exposed_);
  for (int from = last; from >= 0; --from) {
    double alive = 1, left = 0, whole = 0;
    for (int age = from; age <= last; ++age) {
      const auto i = static_cast<size_t>(age);
      if (exposed_[i] <= kSeen) continue;
      const double dying = alive * std::min(1.0F, deaths_[i] / exposed_[i]);
      left += dying * log2_left(from, age);
      whole += dying * (age + 0.5);
      alive -= dying;
    }
    left_[static_cast<size_t>(from)] =
        static_cast<float>(std::max(0.0, left + alive * log2_left(from, last + 1)));
    if (from == 0) mean_ = whole + alive * (last + 1.5);
  }
}

void LifeTable::fade() {
  for (float& count : deaths_) count *= kFade;
  for (float& count : exposed_) count *= kFade;
}

LifeTable::Estimate LifeTable::left_at(uint64_t age) const {
  const auto i = static_cast<size_t>(age_of(age));
  if (mean_ < 0 || exposed_[i] <= kSeen) return {};
  return {left_[i], exposed_[i]};
}

}  // namespace streamfs::lab
