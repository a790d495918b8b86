// Simulates the eMMC of Kim 2015, as far as it is known, on the page map with a virtual clock. The
// host writes, trims, and may leave idle time for background work.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "ssd/background.h"
#include "ssd/counters.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/idle_work.h"
#include "ssd/latency.h"
#include "ssd/media/null_media.h"
#include "ssd/victim/greedy.h"

namespace streamfs::lab::figures {

struct KimSetup {
  uint32_t scale = 1;
  double spare = 0.058;            // with twelve more blocks: 7 % of the device
  uint64_t host_page_ns = 20'480;  // of the interface: 200 MB/s
  double dearer = ssd::IdleLimits{}.dearer;
};

// Returns the geometry of 16 GiB: two MLC dies of two planes on one channel, 1,024 superblocks of
// 16 MiB. A scale divides the size of the blocks, not their number. Errors: EINVAL for a scale that
// does not divide their wordlines.
Result<ssd::Geometry> kim_geometry(const KimSetup& setup);

class KimDevice {
 public:
  // Errors: those of kim_geometry().
  static Result<std::unique_ptr<KimDevice>> make(const KimSetup& setup);

  const ssd::Geometry& geometry() const { return geometry_; }
  uint32_t spare_pages() const;  // physical − user pages, the reserve included
  // Errors: ENOSPC.
  Result<void> write(ssd::Lpn first, uint32_t pages);
  void trim(ssd::Lpn page) { ftl_.trim(page); }
  bool live(ssd::Lpn page) const { return ftl_.live(page); }
  // The host sends nothing for `ns`. With `work`, the device does background work meanwhile.
  void idle(uint64_t ns, bool work);

  const ssd::Counters& counters() const { return counters_; }
  // Return the saturating host's rate and the write amplification since `before`.
  double mb_per_s(const ssd::Counters& before) const;
  double waf(const ssd::Counters& before) const;

 private:
  KimDevice(const KimSetup& setup, const ssd::Geometry& geometry);

  const ssd::Geometry geometry_;
  ssd::IdleLimits limits_;
  ssd::Counters counters_;
  ssd::LiveCounts live_;
  ssd::LatencyModel latency_;
  ssd::NullMedia media_;
  ssd::Greedy victim_;
  ssd::StreamRouter router_;
  ssd::PageMap<ssd::NullMedia, ssd::Greedy, ssd::StreamRouter> ftl_;
  ssd::Bursts bursts_;
};

}  // namespace streamfs::lab::figures
