// An FTL that runs on Nand (hybrid.h, log_block.h) as a Firmware over the flash of an image. It has
// one stream, so release() has no effect, and does not estimate the share of its victims.
// Thread safety, errors and crashes: see firmware.h.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "ssd/counters.h"
#include "ssd/ftl/firmware.h"
#include "ssd/geometry.h"
#include "ssd/layout.h"
#include "ssd/media/image_nand.h"

namespace streamfs::ssd {

template <typename Ftl>
class NandFirmware : public Firmware {
 public:
  explicit NandFirmware(const FirmwareParts& parts)
      : parts_(parts), nand_(parts.image, parts.latency, parts.faults) {}

  bool powered() const override { return nand_.powered(); }
  int write(Lpn first, uint32_t count, uint16_t stream, uint16_t vstream,
            const std::byte* data) override {
    int error = powered() ? 0 : EIO;
    for (uint32_t i = 0; i < count && error == 0; ++i) {
      const bool live = ftl_->live(first + i);
      error = ftl_->write(first + i, 1, stream, vstream, data + i * kPageBytes);
      if (error == 0 && !live) ++parts_.state.live.live_pages;
    }
    count_streams();
    return error;
  }
  void trim(Lpn page) override {
    if (!powered() || !ftl_->live(page)) return;
    ftl_->trim(page);
    --parts_.state.live.live_pages;
  }
  int flush() override { return powered() ? ftl_->flush() : EIO; }
  Ppn location(Lpn page) const override { return ftl_->location(page); }
  int read(Ppn first, std::byte* data, uint32_t pages) const override {
    return nand_.read_pages(first, data, pages);
  }
  void release(uint16_t /*stream*/) override {}
  size_t free_blocks() const override { return ftl_->free_blocks(); }
  double host_victim_share() override { return 0; }
  Wear wear() const override { return nand_.wear(); }

 protected:
  // Goes on with an FTL that has found its pages.
  void take_over(std::unique_ptr<Ftl> ftl) {
    ftl_ = std::move(ftl);
    parts_.state.live.live_pages = ftl_->live_pages();
    parts_.state.damaged_pages = 0;  // damaged spare areas show in reads
    count_streams();
  }
  // All pages are of the one stream.
  void count_streams() {
    Counters& count = parts_.state.now;
    count.streams[0] = {count.host_pages, count.gc_pages};
    LiveCounts& live = parts_.state.live;
    live.peak_live_pages = std::max(live.peak_live_pages, live.live_pages);
  }
  const FirmwareParts& parts() const { return parts_; }
  ImageNand& nand() { return nand_; }
  Ftl& ftl() { return *ftl_; }

 private:
  const FirmwareParts parts_;
  ImageNand nand_;
  std::unique_ptr<Ftl> ftl_;  // from power_up() on
};

}  // namespace streamfs::ssd
