#include "learning/write_ages.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/wire/model_table.h"

namespace streamfs::learning {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

WriteAges::WriteAges(uint64_t pages, uint64_t scale_pages, uint64_t bytes_max)
    : scale_pages_(scale_pages),
      step_pages_(std::max<uint64_t>(scale_pages / kStepsAScale, 1)),
      times_(std::max<uint64_t>(bytes_max, 1)) {
  while (pages >> shift_ > bytes_max) ++shift_;
}

uint64_t WriteAges::steps_since(uint8_t time, uint64_t step) const {
  return (step % kTimes + kTimes + 1 - time) % kTimes;
}

uint8_t WriteAges::age_class(uint64_t page, uint64_t clock) const {
  const std::span<Time> times = times_.items();
  const uint64_t at = page >> shift_;
  const uint8_t time = at < times.size() ? times[at].load(kRelaxed) : uint8_t{0};
  if (time == 0) return wire::kAgeOld;
  const uint64_t steps = steps_since(time, clock / step_pages_);
  if (steps >= kForgetSteps + kSlices) return 1;  // another thread's clock is ahead of this one
  return wire::age_class(steps * step_pages_, scale_pages_);
}

void WriteAges::wrote(uint64_t first, uint64_t pages, uint64_t clock) {
  const std::span<Time> times = times_.items();
  const uint64_t step = clock / step_pages_;
  if (step > step_.load(kRelaxed)) step_to(step);
  const auto time = static_cast<uint8_t>(1 + step % kTimes);
  const uint64_t end = std::min<uint64_t>(((first + pages - 1) >> shift_) + 1, times.size());
  uint64_t known = end_.load(kRelaxed);
  while (known < end && !end_.compare_exchange_weak(known, end, kRelaxed)) {
  }
  for (uint64_t at = first >> shift_; at < end; ++at) times[at].store(time, kRelaxed);
}

void WriteAges::step_to(uint64_t step) {
  uint64_t before = step_.load(kRelaxed);
  while (before < step) {
    const uint64_t next = std::max(before + 1, step - std::min(step, kSlices));
    if (step_.compare_exchange_weak(before, next, kRelaxed)) forget(next % kSlices, next);
  }
}

void WriteAges::forget(uint64_t slice, uint64_t step) {
  const std::span<Time> times = times_.items();
  const uint64_t end = std::min(times.size() * (slice + 1) / kSlices, end_.load(kRelaxed));
  const uint64_t begin = std::min(times.size() * slice / kSlices, end);
  for (Time& each : times.subspan(begin, end - begin)) {
    uint8_t time = each.load(kRelaxed);
    if (time == 0 || steps_since(time, step) < kForgetSteps) continue;
    each.compare_exchange_strong(time, 0, kRelaxed);
  }
}

}  // namespace streamfs::learning
