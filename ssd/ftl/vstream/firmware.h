// The vStream-FTL (Yong 2021) as a firmware. The host names a vStream with each write. The device
// measures the lifetimes of the vStreams and maps them to its pStreams (stream_map.h), so the
// host's stream number has no effect. A copy goes to the copies' open block of its vStream's
// present pStream (vSGC, algorithm 3), or with GcMode::kShared to one open block for all copies
// (NGC).
//
// A vStream number that the host gives to other data keeps the lifetimes measured under it. After a
// failed write, the pages of the request that were not written count as dead in the measurement.
//
// Thread safety, errors: see ssd/ftl/firmware.h. After a crash: as the page map; the map of
// vStreams is rebuilt from the spare area (media.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ssd/ftl/firmware.h"
#include "ssd/ftl/page_map_firmware.h"
#include "ssd/ftl/router.h"
#include "ssd/ftl/vstream/lifetimes.h"
#include "ssd/ftl/vstream/media.h"
#include "ssd/geometry.h"

namespace streamfs::ssd::vstream {

// Chooses the open block for a copy. `media` outlives it.
class Router {
 public:
  Router(const Geometry& geometry, Media& media)
      : media_(&media), streams_(geometry.streams), shared_(geometry.gc_mode == GcMode::kShared) {}

  void reads(Ppn at) { media_->map().lifetimes().read(at); }
  FrontierId for_copy(Lpn /*page*/, FrontierId /*source*/, uint64_t /*clock*/) {
    if (shared_) return streams_;
    StreamMap& map = media_->map();
    return static_cast<FrontierId>(streams_ + map.of(map.lifetimes().last_read()).value);
  }
  void collected(FrontierId /*frontier*/, uint64_t /*opened_at*/, uint64_t /*clock*/) const {}

 private:
  Media* media_;
  uint16_t streams_;
  bool shared_;
};

class VStreamFirmware final : public PageMapFirmware<Media, Router> {
 public:
  explicit VStreamFirmware(const FirmwareParts& parts) : PageMapFirmware(parts) {}

  Result<void> power_up() override;
  int write(Lpn first, uint32_t count, uint16_t stream, uint16_t vstream,
            const std::byte* data) override;
  void trim(Lpn page) override;
  void release(uint16_t /*stream*/) override {}  // the host knows none of the pStreams

 private:
  void dies(Lpn page, uint64_t clock);
  void count_vstreams();
};

}  // namespace streamfs::ssd::vstream
