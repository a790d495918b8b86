// The eMMC of Kim 2015, as far as it is known, on the page map with a virtual clock: random writes,
// trims, and a host that gives it time for background work, or none.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "emulator/background.h"
#include "emulator/counters.h"
#include "emulator/ftl/page_map.h"
#include "emulator/ftl/router.h"
#include "emulator/geometry.h"
#include "emulator/idle_work.h"
#include "emulator/latency.h"
#include "emulator/media/null_media.h"
#include "emulator/policy/victim/greedy.h"

namespace streamfs::emulator::figures {

struct KimSetup {
  uint32_t scale = 1;
  double spare = 0.058;            // and twelve blocks: 7 % of the device
  uint64_t host_page_ns = 20'480;  // of the interface: 200 MB/s
  double dearer = IdleLimits{}.dearer;
};

// 16 GiB: two MLC dies of two planes on one channel, 1,024 superblocks of 16 MiB.
// EINVAL for a scale that does not divide their wordlines.
Result<Geometry> kim_geometry(const KimSetup& setup);

class KimDevice {
 public:
  static Result<std::unique_ptr<KimDevice>> make(const KimSetup& setup);

  const Geometry& geometry() const { return geometry_; }
  uint32_t spare_pages() const;  // of all blocks, not of the data
  Result<void> write(Lpn first, uint32_t pages);
  void trim(Lpn page) { ftl_.trim(page); }
  bool live(Lpn page) const { return ftl_.live(page); }
  // The host sends nothing for so long; with `work` the device does what it finds worth doing.
  void idle(uint64_t ns, bool work);

  const Counters& counters() const { return counters_; }
  // Of the saturating host, since the counters were `before`.
  double mb_per_s(const Counters& before) const;
  double waf(const Counters& before) const;

 private:
  KimDevice(const KimSetup& setup, const Geometry& geometry);

  const Geometry geometry_;
  IdleLimits limits_;
  Counters counters_;
  LiveCounts live_;
  LatencyModel latency_;
  NullMedia media_;
  Greedy victim_;
  StreamRouter router_;
  PageMap<NullMedia, Greedy, StreamRouter> ftl_;
  Bursts bursts_;
};

}  // namespace streamfs::emulator::figures
