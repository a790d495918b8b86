#include "lab/figures/kim_device.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/types.h"
#include "ssd/background.h"
#include "ssd/counters.h"
#include "ssd/geometry.h"
#include "ssd/idle_work.h"
#include "ssd/latency.h"

namespace streamfs::lab::figures {
namespace {

constexpr uint64_t kKimBytes = 16 * kGiB;
constexpr ssd::NandShape kKimNand{1, 1, 2, 2, 128, ssd::Cell::kMlc};
constexpr uint32_t kKimStep = 64;  // pages copied before the clock is looked at

// MLC of 2012 (25 nm): pages of 8 KiB, 1.3 ms to program, 75 µs to read. The model's wordline holds
// four of them in each plane, and its flash page two.
ssd::Timing kim_timing(const KimSetup& setup) {
  ssd::Timing timing;
  timing.program_ns = 4 * 1'300'000;
  timing.read_ns = 2 * 75'000;
  timing.erase_ns = 3'800'000;
  timing.channel_page_ns = 16'384 * 1000 / 200;  // 200 MB/s
  timing.host_page_ns = setup.host_page_ns;
  timing.buffer_depth = 1;
  return timing;
}

}  // namespace

Result<ssd::Geometry> kim_geometry(const KimSetup& setup) {
  ssd::GeometryRequest request;
  request.nand = kKimNand;
  if (setup.scale == 0 || kKimNand.wordlines % setup.scale != 0)
    return Error{EINVAL, fmt::format("impossible geometry: scale 1/{}: {} wordlines of a block "
                                     "cannot be divided so",
                                     setup.scale, kKimNand.wordlines)};
  request.nand->wordlines /= setup.scale;
  request.user_bytes = kKimBytes / setup.scale;
  request.spare = setup.spare;
  request.streams = 1;
  return ssd::plan_geometry(request);
}

Result<std::unique_ptr<KimDevice>> KimDevice::make(const KimSetup& setup) {
  SFS_ASSIGN(const ssd::Geometry geometry, kim_geometry(setup));
  return std::unique_ptr<KimDevice>(new KimDevice(setup, geometry));
}

KimDevice::KimDevice(const KimSetup& setup, const ssd::Geometry& geometry)
    : geometry_(geometry),
      limits_{.dearer = setup.dearer},
      latency_(kim_timing(setup), geometry, counters_),
      media_(&latency_),
      victim_(geometry),
      router_(geometry),
      ftl_(geometry, media_, victim_, router_, counters_, live_) {}

uint32_t KimDevice::spare_pages() const {
  return static_cast<uint32_t>(geometry_.physical_pages() - geometry_.user_pages);
}

Result<void> KimDevice::write(ssd::Lpn first, uint32_t pages) {
  latency_.begin_write(pages);
  const int error = ftl_.write(first, pages, 0, 0, nullptr);
  latency_.end_write();
  return error == 0 ? Result<void>() : Result<void>(Error{error, "writing"});
}

void KimDevice::idle(uint64_t ns, bool work) {
  bursts_.ended(counters_.host_pages, geometry_);
  const ssd::IdleLimits limits =
      bursts_.by_experience(limits_, geometry_, ftl_.host_victim_share());
  latency_.rest();
  while (work && latency_.backlog_ns() < ns) {
    const uint64_t copied = counters_.gc_pages;
    const ssd::IdleStep step = ssd::idle_step(ftl_, geometry_, limits, kKimStep);
    counters_.idle_gc_pages += counters_.gc_pages - copied;
    if (step == ssd::IdleStep::kNothing) break;
  }
  latency_.rested(ns);
}

double KimDevice::mb_per_s(const ssd::Counters& before) const {
  const uint64_t ns = counters_.saturated_ns - before.saturated_ns;
  const uint64_t pages = counters_.host_pages - before.host_pages;
  return static_cast<double>(pages * ssd::kPageBytes) * 1e3 / static_cast<double>(ns);
}

double KimDevice::waf(const ssd::Counters& before) const {
  const uint64_t host = counters_.host_pages - before.host_pages,
                 copies = counters_.gc_pages - before.gc_pages;
  return 1 + static_cast<double>(copies) / static_cast<double>(host);
}

}  // namespace streamfs::lab::figures
