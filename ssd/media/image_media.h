// The flash of an image file: data at its physical place, spare area, block records. Pages are map
// units, except in read(). Asserts the rules of NAND: pages of a block in order, each once per
// erase.
//
// Thread safety: none; the SSD's lock. read() may run beside other reads. After a crash: see
// layout.h; data is written before its spare entry. After a power cut (NandFaults) no call changes
// the flash; store() and move() fail with EIO, and read() still works.
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

// Returned by read() beside errno values: the data does not fit its checksum.
inline constexpr int kDataDamaged = -2;

class ImageMedia {
 public:
  // `faults` may be null.
  ImageMedia(Image& image, LatencyModel& latency, NandFaults* faults);
  void restore(const SpareScan& scan);
  bool powered() const { return powered_; }
  void power_off() { powered_ = false; }  // after a cut outside this object

  // The calls of PageMap (its contract: page_map.h). store and move return errno values or
  // kProgramFailed; erased() returns false if the erase failed.
  int store(Ppn at, const std::byte* data, uint32_t pages);
  int move(std::span<const Ppn> from, Ppn to);
  void stamp_host(Ppn at, Lpn page, WriteStamp stamp);
  void stamp_copy(Ppn at, Ppn from, uint64_t sequence);  // a damaged entry stays damaged
  void stamp_pad(Ppn at, uint64_t sequence);
  void opened(BlockIndex block, FrontierId frontier);
  void committed(BlockIndex block, uint32_t pages);
  bool erased(BlockIndex block);
  void failed(BlockIndex block);
  void retired(BlockIndex block);

  // Reads pages of 4 KiB; map unit u begins at page u × map_unit_pages. Checks every map unit that
  // it touches against the checksum in its spare entry. Returns errno values or kDataDamaged;
  // `data` is then undefined.
  int read(Ppn first, std::byte* data, uint32_t pages) const;
  // Stores the sequence of the page's trim, in `trim` of layout.h.
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
  std::vector<uint32_t> committed_;         // by block: pages that left the buffer
  std::vector<bool> unclean_;               // by block: see SpareScan
  Ppn stored_at_ = 0;                       // of the last store
  std::vector<uint32_t> stored_checksums_;  // of the last store's pages
  std::unique_ptr<std::byte, FreeDeleter> copy_buffer_;
};

}  // namespace streamfs::ssd
