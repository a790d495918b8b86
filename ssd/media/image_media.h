// The flash of an image file: data at its physical place, spare area, block records. Pages are map
// units, but for read(). Asserts what NAND demands: pages of a block in order, each once per erase.
//
// Thread safety: none; the SSD's lock. read() may run beside other reads.
// Crash: see layout.h; data is written before its spare entry. After a power cut (NandFaults) no
// call changes the flash any more, and what can fail does.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ssd/ftl/page_map.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/media/nand_faults.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd {

// What read() answers beside errno values: the data is not what was programmed.
inline constexpr int kDataDamaged = -2;

class ImageMedia {
 public:
  // `faults` may be none.
  ImageMedia(Image& image, LatencyModel& latency, NandFaults* faults);
  void restore(const SpareScan& scan);
  bool powered() const { return powered_; }
  void power_off() { powered_ = false; }  // it went elsewhere

  // The calls of PageMap; store and move return errno values or kProgramFailed.
  int store(Ppn at, const std::byte* data, uint32_t pages);
  int move(std::span<const Ppn> from, Ppn to);
  void stamp_host(Ppn at, Lpn page, WriteStamp stamp);
  void stamp_copy(Ppn at, Ppn from, uint64_t sequence);
  void stamp_pad(Ppn at, uint64_t sequence);
  void opened(BlockIndex block, FrontierId frontier);
  void committed(BlockIndex block, uint32_t pages);
  bool erased(BlockIndex block);
  void failed(BlockIndex block);
  void retired(BlockIndex block);

  // In pages of 4 KiB: those of map unit u from u × map_unit_pages on. Whole map units are held
  // against the checksum in their spare entries; `data` is worth nothing after an error.
  int read(Ppn first, std::byte* data, uint32_t pages) const;
  void trimmed(Lpn page, uint64_t sequence);

 private:
  struct FreeDeleter {
    void operator()(std::byte* p) const;
  };

  bool can_program(Ppn at, uint32_t pages);
  void stamp(Ppn at, SpareEntry entry);
  void tear(Ppn first, uint32_t pages);
  int move_some(std::span<const Ppn> from, Ppn to);
  int read_units(Ppn first, Bytes data) const;
  int read_part(Ppn first, Bytes data) const;

  Image& image_;
  LatencyModel& latency_;
  NandFaults* const faults_;
  std::span<BlockRecord> blocks_;
  std::span<SpareEntry> spare_;
  std::span<uint64_t> trims_;
  const uint32_t pages_per_block_;
  const uint32_t wordline_;
  const uint32_t unit_;  // pages of 4 KiB
  const bool plp_;
  bool powered_ = true;
  std::vector<uint32_t> programmed_;        // by block: pages stamped since its erase
  std::vector<uint32_t> committed_;         // by block: pages out of the buffer
  std::vector<bool> unclean_;               // by block: see SpareScan
  Ppn stored_at_ = 0;                       // of the last store
  std::vector<uint32_t> stored_checksums_;  // of its pages
  std::unique_ptr<std::byte, FreeDeleter> copy_buffer_;
};

}  // namespace streamfs::ssd
