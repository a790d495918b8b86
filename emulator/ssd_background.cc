// Ssd: what it does while the host is idle.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"
#include "base/types.h"
#include "emulator/background.h"
#include "emulator/counters.h"
#include "emulator/geometry.h"
#include "emulator/image.h"
#include "emulator/ssd.h"

namespace streamfs::emulator {
namespace {

constexpr uint64_t kStepPages = 64;  // copied before the host may have its turn

}  // namespace

uint32_t Ssd::wanted_free_blocks(const IdleLimits& limits) const {
  if (limits.free_blocks != 0) return limits.free_blocks;
  const auto data = static_cast<uint32_t>(div_round_up(units_.user_pages, units_.pages_per_block));
  return std::max<uint32_t>((units_.blocks - data) / 4, units_.low_water + 2u);
}

Urgency Ssd::urgency_now(const IdleLimits& limits) const {
  const size_t free = ftl_.free_blocks(), wanted = wanted_free_blocks(limits);
  if (free >= wanted) return Urgency::kNone;
  if (free <= units_.low_water + 1u) return Urgency::kCritical;
  return 2 * free >= wanted ? Urgency::kLow : Urgency::kHigh;
}

Urgency Ssd::urgency(const IdleLimits& limits) {
  const ReadLock lock(ftl_mutex_);
  return urgency_now(limits);
}

// One step of garbage collection or, where that has nothing to do, of wear levelling.
bool Ssd::idle_step(const IdleLimits& limits, uint32_t most, IdleReport& report) {
  const WriteLock lock(ftl_mutex_);
  const SharedUpdate update(image_->shared());
  Counters& count = counters();
  const uint64_t copied = count.gc_pages, erased = count.erases;
  const Urgency urgency = urgency_now(limits);
  const auto limit = [&](double share) {
    return static_cast<uint32_t>(share * units_.pages_per_block);
  };
  bool done = false, wear = false;
  switch (urgency) {
    case Urgency::kNone:
      break;
    case Urgency::kLow:
      done = ftl_.collect_some(limit(limits.valid_limit), most);
      break;
    case Urgency::kHigh:
      done = ftl_.collect_some(limit((1 + limits.valid_limit) / 2), most);
      break;
    case Urgency::kCritical:
      done = ftl_.collect_some(units_.pages_per_block, most);
      break;
  }
  if (!done && (urgency == Urgency::kNone || urgency == Urgency::kLow))
    done = wear = ftl_.level_wear(limits.wear_spread, most);
  const uint64_t pages = count.gc_pages - copied;
  (wear ? report.wear_pages : report.gc_pages) += pages;
  (wear ? count.wear_pages : count.idle_gc_pages) += pages;
  report.erases += count.erases - erased;
  return done && media_.powered();
}

IdleReport Ssd::run_idle(const IdleLimits& limits) {
  IdleReport report;
  const uint64_t unit = units_.map_unit_pages;
  while (!read_only_) {
    const uint64_t left =
        limits.pages - std::min(limits.pages, report.gc_pages + report.wear_pages);
    const uint64_t most = std::min(left, kStepPages) / unit;
    report.end = IdleReport::End::kStopped;
    if (limits.stop && limits.stop()) return report;
    report.end = IdleReport::End::kDeadline;
    if (std::chrono::steady_clock::now() >= limits.deadline) return report;
    report.end = IdleReport::End::kPages;
    if (most == 0) return report;
    if (!idle_step(limits, static_cast<uint32_t>(most), report)) break;
  }
  report.end = IdleReport::End::kNothingLeft;
  return report;
}

Ssd::Wear Ssd::wear() {
  const ReadLock lock(ftl_mutex_);
  const auto [least, most] = ftl_.wear();
  return {least, most};
}

}  // namespace streamfs::emulator
