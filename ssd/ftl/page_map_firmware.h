// The page-mapped FTL as a Firmware, over ImageMedia or a Media that wraps it. A Router is made
// of the geometry, and of the Media if it takes one. Thread safety, errors and crashes: see
// firmware.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "ssd/ftl/firmware.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/idle_work.h"
#include "ssd/media/spare_scan.h"
#include "ssd/victim/device_victim.h"

namespace streamfs::ssd {

template <typename Media, typename Router = StreamRouter>
class PageMapFirmware : public Firmware {
 public:
  explicit PageMapFirmware(const FirmwareParts& parts)
      : parts_(parts),
        media_(parts.image, parts.latency, parts.faults),
        victim_(parts.geometry),
        router_(router_of(parts.geometry, media_)),
        ftl_(parts.geometry, media_, victim_, router_, parts.state.now, parts.state.live) {}

  Result<void> power_up() override {
    take_over(scan_spare(parts_.image, !parts_.read_only));
    return {};
  }
  bool powered() const override { return media_.powered(); }
  int write(Lpn first, uint32_t count, uint16_t stream, uint16_t vstream,
            const std::byte* data) override {
    return ftl_.write(first, count, stream, vstream, data);
  }
  void trim(Lpn page) override {
    media_.trimmed(page, ftl_.take_sequence());
    ftl_.trim(page);
  }
  int flush() override { return ftl_.flush(); }
  Ppn location(Lpn page) const override { return ftl_.location(page); }
  int read(Ppn first, std::byte* data, uint32_t pages) const override {
    return media_.read(first, data, pages);
  }
  void release(uint16_t stream) override { ftl_.seal(stream); }
  size_t free_blocks() const override { return ftl_.free_blocks(); }
  IdleStep idle_step(const IdleLimits& limits, uint32_t most) override {
    return ssd::idle_step(ftl_, parts_.geometry, limits, most);
  }
  double host_victim_share() override { return ftl_.host_victim_share(); }
  Wear wear() const override {
    const auto [least, most] = ftl_.wear();
    return {least, most};
  }

 protected:
  // Goes on from what a scan of the spare area found. layout.h states which version of a page
  // counts.
  void take_over(const SpareScan& scan) {
    parts_.state.damaged_pages = scan.damaged_pages;
    std::vector<RecoveredBlock> blocks = scan.blocks;
    media_.restore(scan);
    for (const BlockIndex block : scan.half_erased) {
      if (parts_.read_only) break;
      if (media_.erased(block)) {
        ++blocks[block].erases;
        ++parts_.state.now.erases;
      } else {
        blocks[block].retired = true;
        ++parts_.state.now.erase_failures;
      }
    }
    ftl_.restore(blocks, scan.location, scan.next_sequence);
  }

  const FirmwareParts& parts() const { return parts_; }
  Media& media() { return media_; }
  const Media& media() const { return media_; }
  uint64_t clock() const { return ftl_.clock(); }  // PageMap::clock()

 private:
  static Router router_of(const Geometry& geometry, Media& media) {
    if constexpr (std::is_constructible_v<Router, const Geometry&, Media&>)
      return Router(geometry, media);
    else
      return Router(geometry);
  }

  const FirmwareParts parts_;
  Media media_;
  DeviceVictim victim_;
  Router router_;
  PageMap<Media, DeviceVictim, Router> ftl_;
};

}  // namespace streamfs::ssd
