#include "classifierd/src_core/survival.h"

#include <algorithm>
#include <numeric>
#include <ranges>

namespace streamfs::classifier {

namespace {
constexpr double kTrace = 1e-3;  // Less than this many pages is nothing.
}

void Hazard::add(const Hazard& other) {
  for (uint32_t j = 0; j < kAgeBins; ++j) {
    deaths[j] += other.deaths[j];
    entered[j] += other.entered[j];
  }
}

void Hazard::decay(double factor) {
  for (double& value : deaths) value *= factor;
  for (double& value : entered) value *= factor;
}

double Hazard::evidence() const {
  return *std::ranges::max_element(entered);
}

double Hazard::mean_log2() const {
  double alive = 1;
  double mean = 0;
  int last_known = -1;
  for (uint32_t j = 0; j < kAgeBins; ++j) {
    if (entered[j] <= kTrace) continue;
    last_known = static_cast<int>(j);
    const double dying = alive * std::min(1.0, deaths[j] / entered[j]);
    mean += dying * (j + 0.5);
    alive -= dying;
  }
  return last_known < 0 ? -1 : mean + alive * (last_known + 1.5);
}

uint64_t Cohorts::Cohort::waiting() const {
  return std::accumulate(pending.begin() + committed, pending.end(), uint64_t{0});
}

void Cohorts::born(uint64_t epoch_start) {
  if (cohorts_.empty() || cohorts_.back().start != epoch_start) {
    cohorts_.push_back({.start = epoch_start});
  }
  ++cohorts_.back().alive;
}

Cohorts::Cohort* Cohorts::find(uint64_t birth) {
  const auto after = std::ranges::upper_bound(cohorts_, birth, {}, &Cohort::start);
  if (after == cohorts_.begin()) return nullptr;
  Cohort& cohort = *std::prev(after);
  return cohort.alive == 0 ? nullptr : &cohort;
}

void Cohorts::died(uint64_t birth, uint64_t age, double weight, Hazard& known) {
  Cohort* const cohort = find(birth);
  if (cohort == nullptr) return;
  --cohort->alive;
  const uint32_t bin = age_bin(age);
  if (bin >= cohort->committed) {
    ++cohort->pending[bin];
    return;
  }
  // The page was counted as a survivor of this bin and the later ones: take that back.
  known.deaths[bin] += weight;
  for (uint32_t j = bin + 1; j < cohort->committed; ++j) {
    known.entered[j] = std::max(0.0, known.entered[j] - weight);
  }
}

void Cohorts::lost(uint64_t birth) {
  if (Cohort* const cohort = find(birth)) --cohort->alive;
}

void Cohorts::halve_deaths() {
  for (Cohort& cohort : cohorts_) {
    // Halves go up and down by turns.
    for (uint32_t j = 0; j < kAgeBins; ++j) cohort.pending[j] = (cohort.pending[j] + j % 2) / 2;
  }
}

void Cohorts::commit_bins(Cohort& cohort, uint64_t now, double weight, Hazard& known) {
  const uint64_t middle = cohort.start + (cohort.end - cohort.start) / 2;
  uint64_t at_risk = cohort.alive + cohort.waiting();
  while (cohort.committed < kAgeBins && now - middle >= uint64_t{2} << cohort.committed) {
    const uint32_t bin = cohort.committed++;
    known.entered[bin] += static_cast<double>(at_risk) * weight;
    known.deaths[bin] += cohort.pending[bin] * weight;
    at_risk -= cohort.pending[bin];
    cohort.pending[bin] = 0;
  }
}

void Cohorts::commit(uint64_t now, double weight, Hazard& known) {
  for (Cohort& cohort : cohorts_) {
    if (cohort.end == 0) cohort.end = now;
    commit_bins(cohort, now, weight, known);
  }
  std::erase_if(cohorts_, [](const Cohort& c) { return c.alive == 0 && c.waiting() == 0; });
  merge(now);
}

void Cohorts::merge(uint64_t now) {
  size_t kept = 0;
  for (size_t i = 1; i < cohorts_.size(); ++i) {
    Cohort& older = cohorts_[kept];
    const Cohort& younger = cohorts_[i];
    const bool near = younger.end - older.start <= (now - younger.end) / 8;
    if (!near || older.committed != younger.committed) {
      cohorts_[++kept] = younger;
      continue;
    }
    older.end = younger.end;
    older.alive += younger.alive;
    for (uint32_t j = 0; j < kAgeBins; ++j) older.pending[j] += younger.pending[j];
  }
  if (!cohorts_.empty()) cohorts_.resize(kept + 1);
}

}  // namespace streamfs::classifier
