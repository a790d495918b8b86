// Ssd: background work while the host is idle.
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/mutex.h"
#include "ssd/background.h"
#include "ssd/counters.h"
#include "ssd/ftl/firmware.h"
#include "ssd/geometry.h"
#include "ssd/idle_work.h"
#include "ssd/real_time.h"
#include "ssd/ssd.h"

namespace streamfs::ssd {
namespace {

constexpr uint64_t kStepPages = 64;  // pages copied before the host has its turn

}  // namespace

Urgency Ssd::urgency(const IdleLimits& limits) {
  const ReadLock lock(ftl_mutex_);
  return urgency_of(units_, firmware_->free_blocks(), limits);
}

// Does a step of garbage collection or, if that has nothing to do, of wear levelling.
bool Ssd::idle_step(const IdleLimits& limits, uint32_t most, IdleReport& report,
                    Acknowledgement& done) {
  const WriteLock lock(ftl_mutex_);
  const Change change(*this);
  Counters& count = counters();
  const uint64_t copied = count.gc_pages, erased = count.erases;
  if (real_time_.on()) latency_.wall_arrives(real_time_.now_ns(), 0);
  const IdleStep step = firmware_->idle_step(limits, most);
  const bool worked = step != IdleStep::kNothing, wear = step == IdleStep::kLevelled;
  const uint64_t pages = count.gc_pages - copied;
  (wear ? report.wear_pages : report.gc_pages) += pages;
  (wear ? count.wear_pages : count.idle_gc_pages) += pages;
  report.erases += count.erases - erased;
  if (worked) acknowledge(&done, latency_.wall_drained_ns());
  return worked && firmware_->powered();
}

IdleReport Ssd::run_idle(const IdleLimits& limits) {
  IdleReport nothing;
  nothing.end = IdleReport::End::kNothingLeft;
  if (read_only_) return nothing;
  IdleLimits now;
  {
    const WriteLock lock(ftl_mutex_);
    bursts_.ended(counters().host_pages / geometry_.map_unit_pages, units_);
    now = bursts_.by_experience(limits, units_, firmware_->host_victim_share());
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
  const MutexLock reading(reading_mutex_);
  return latency_.backlog_ns() >= limits.idle_ns;
}

IdleReport Ssd::idle_steps(const IdleLimits& limits) {
  IdleReport report;
  const uint64_t unit = units_.map_unit_pages;
  for (;;) {
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

Wear Ssd::wear() {
  const ReadLock lock(ftl_mutex_);
  return firmware_->wear();
}

}  // namespace streamfs::ssd
