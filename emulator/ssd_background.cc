// Ssd: what it does while the host is idle.
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/mutex.h"
#include "base/types.h"
#include "emulator/background.h"
#include "emulator/counters.h"
#include "emulator/geometry.h"
#include "emulator/real_time.h"
#include "emulator/ssd.h"

namespace streamfs::emulator {
namespace {

constexpr uint64_t kStepPages = 64;     // copied before the host may have its turn
constexpr double kForgotten = 7.0 / 8;  // of the largest burst, at the end of each

}  // namespace

// What the host wrote since the last idle time is a burst: the largest of the last ones is what it
// may want to write again before the next.
void Ssd::end_of_burst() {
  const uint64_t written = counters().host_pages / geometry_.map_unit_pages;
  const uint64_t pages = written - std::min(written, burst_began_);
  burst_began_ = written;
  if (pages == 0) return;
  const auto blocks = static_cast<double>(div_round_up(pages, units_.pages_per_block));
  burst_blocks_ = std::max(blocks, burst_blocks_ * kForgotten);
}

IdleLimits Ssd::by_experience(IdleLimits limits) {
  if (limits.free_blocks == 0 && burst_blocks_ > 0)
    limits.free_blocks = blocks_for_burst(units_, static_cast<uint64_t>(burst_blocks_));
  const double share = ftl_.host_victim_share();  // 1 - share: what a page of a victim gives back
  if (share > 0) limits.valid_limit = std::max(limits.valid_limit, 1 - (1 - share) / limits.dearer);
  return limits;
}

Urgency Ssd::urgency(const IdleLimits& limits) {
  const ReadLock lock(ftl_mutex_);
  return urgency_of(units_, ftl_.free_blocks(), limits);
}

// One step of garbage collection or, where that has nothing to do, of wear levelling.
bool Ssd::idle_step(const IdleLimits& limits, uint32_t most, IdleReport& report,
                    Acknowledgement& done) {
  const WriteLock lock(ftl_mutex_);
  const Change change(*this);
  Counters& count = counters();
  const uint64_t copied = count.gc_pages, erased = count.erases;
  if (real_time_.on()) latency_.wall_arrives(real_time_.now_ns(), 0);
  const Urgency urgency = urgency_of(units_, ftl_.free_blocks(), limits);
  const auto limit = [&](double share) {
    return static_cast<uint32_t>(share * units_.pages_per_block);
  };
  bool worked = false, wear = false;
  switch (urgency) {
    case Urgency::kNone:
      break;
    case Urgency::kLow:
      worked = ftl_.collect_some(limit(limits.valid_limit), most);
      break;
    case Urgency::kHigh:
      worked = ftl_.collect_some(limit((1 + limits.valid_limit) / 2), most);
      break;
    case Urgency::kCritical:
      worked = ftl_.collect_some(units_.pages_per_block, most);
      break;
  }
  if (!worked && (urgency == Urgency::kNone || urgency == Urgency::kLow))
    worked = wear = ftl_.level_wear(limits.wear_spread, most);
  const uint64_t pages = count.gc_pages - copied;
  (wear ? report.wear_pages : report.gc_pages) += pages;
  (wear ? count.wear_pages : count.idle_gc_pages) += pages;
  report.erases += count.erases - erased;
  if (worked) acknowledge(&done, latency_.wall_drained_ns());
  return worked && media_.powered();
}

IdleReport Ssd::run_idle(const IdleLimits& limits) {
  IdleLimits now;
  {
    const WriteLock lock(ftl_mutex_);
    end_of_burst();
    now = by_experience(limits);
    if (limits.idle_ns != 0) latency_.rest();
  }
  const IdleReport report = idle_steps(now);
  if (limits.idle_ns == 0) return report;
  const WriteLock lock(ftl_mutex_);
  latency_.rested(limits.idle_ns);
  return report;
}

bool Ssd::idle_time_is_over(const IdleLimits& limits) {
  if (std::chrono::steady_clock::now() >= limits.deadline) return true;
  if (limits.idle_ns == 0) return false;
  const ReadLock lock(ftl_mutex_);
  return latency_.backlog_ns() >= limits.idle_ns;
}

IdleReport Ssd::idle_steps(const IdleLimits& limits) {
  IdleReport report;
  const uint64_t unit = units_.map_unit_pages;
  while (!read_only_) {
    const uint64_t left =
        limits.pages - std::min(limits.pages, report.gc_pages + report.wear_pages);
    const uint64_t most = std::min(left, kStepPages) / unit;
    report.end = IdleReport::End::kStopped;
    if (limits.stop && limits.stop()) return report;
    report.end = IdleReport::End::kDeadline;
    if (idle_time_is_over(limits)) return report;
    report.end = IdleReport::End::kPages;
    if (most == 0) return report;
    Acknowledgement done;
    if (!idle_step(limits, static_cast<uint32_t>(most), report, done)) break;
    done.wait();
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
