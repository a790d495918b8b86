// The flash of an image file as Nand: pages of 4 KiB, each with a spare entry (layout.h). Asserts
// the rules of NAND.
//
// A page whose spare entry is damaged, and that no cut explains, is kUnknownPage; its copies read
// as damaged. Damaged data is found by reads alone.
//
// Thread safety: none; the SSD's lock. read_pages() may run beside itself.
// After a crash: data is written before its spare entry. After a power cut (NandFaults) no call
// changes the flash; read_pages() still works.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/types.h"
#include "ssd/ftl/firmware.h"
#include "ssd/ftl/nand.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/layout.h"
#include "ssd/media/nand_faults.h"

namespace streamfs::ssd {

class ImageNand final : public Nand {
 public:
  // `faults` may be null; only its power cuts happen.
  ImageNand(Image& image, LatencyModel& latency, NandFaults* faults);
  bool powered() const { return powered_; }

  uint32_t page_bytes() const override { return kPageBytes; }
  int program(Ppn at, const Spare& spare, const std::byte* data) override;
  int copy(Ppn from, Ppn to, const Spare& spare) override;
  int erase(BlockIndex block) override;
  int read(Ppn at, std::byte* data) override;
  std::optional<Spare> spare(Ppn at) override;

  // Reads for the host: returns errno values, or kDataDamaged (image_media.h) if a page is not
  // whole or does not exist; `data` is then undefined.
  int read_pages(Ppn first, std::byte* data, uint32_t pages) const;
  uint64_t spares_read() const { return spares_read_; }  // by this object
  Wear wear() const;

 private:
  enum class PageState : uint8_t { kErased, kWhole, kTorn, kDamaged };

  PageState state_of(Ppn at) const;
  bool interrupted(Ppn at) const;
  bool data_fits(Ppn at) const;
  int put(Ppn at, SpareEntry entry, ConstBytes data);
  void settle(BlockIndex block);
  void stamp(Ppn at, SpareEntry entry);
  void tear(Ppn first, uint32_t pages);

  Image& image_;
  LatencyModel& latency_;
  NandFaults* const faults_;
  const std::span<BlockRecord> blocks_;
  const std::span<SpareEntry> spare_;
  const uint32_t pages_per_block_;
  bool powered_ = true;
  uint64_t spares_read_ = 0;
  std::array<std::byte, kPageBytes> copied_{};
};

}  // namespace streamfs::ssd
