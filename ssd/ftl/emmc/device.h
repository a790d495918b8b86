// An eMMC with streams in one image file (Vishwakarma 2019): the page-mapped FTL with one active
// block for each of four streams and the default one, and garbage collection that ignores streams.
// After a power cut it starts from its last global context instead of a scan of all the flash.
//
// Thread safety: none. The image is locked while open. After a crash: flushed writes are kept; a
// page written since the last flush has its new or its old content. A trim that returned is kept.
// Death of the machine: see layout.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "ssd/ftl/emmc/interface.h"
#include "ssd/ftl/emmc/media.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/media/nand_faults.h"
#include "ssd/victim/greedy.h"

namespace streamfs::ssd::emmc {

class Device {
 public:
  struct Options {
    NandFaults* faults = nullptr;  // outlives the device
    uint64_t context_pages = 0;    // host pages between two contexts; 0: a block's
  };

  // Errors: those of Image::create; EINVAL unless the device has 5 streams, shared GC, a volatile
  // buffer, map units of 4 KiB and flash without failures.
  static Result<void> create(const std::string& path, GeometryRequest request);
  // Errors: those of Image::open; EINVAL for an image of another FTL; EIO for a power cut.
  static Result<std::unique_ptr<Device>> open(const std::string& path, const Options& options);

  const Geometry& geometry() const { return geometry_; }

  // `cmd23`, SET_BLOCK_COUNT's argument, has the stream. Errors, here and below: EINVAL beyond the
  // device, ENOSPC, EIO.
  Result<void> write(uint32_t cmd23, uint64_t page, ConstBytes bytes);
  Result<void> read(uint64_t page, Bytes bytes);
  Result<void> trim(uint64_t page, uint64_t count);
  Result<void> flush();
  // SWITCH of a byte of EXT_CSD. Errors: EINVAL for a byte that is not writable or an invalid
  // value.
  Result<void> write_ext_csd(uint8_t index, uint8_t value);
  uint8_t read_ext_csd(uint8_t index) const;

  bool streams_on() const { return switch_.on(live().live_pages); }
  const Counters& counters() const { return image_->shared().now; }
  const LiveCounts& live() const { return image_->shared().live; }
  // Returns the number of blocks that power-up read; all blocks if there was no context.
  uint32_t blocks_read() const { return blocks_read_; }

 private:
  using Ftl = PageMap<Media, Greedy, StreamRouter>;

  Device(std::unique_ptr<Image> image, const Options& options);
  Result<void> recover();
  Result<void> powered(int error, const char* what);
  Result<void> check_range(uint64_t page, uint64_t count) const;

  std::unique_ptr<Image> image_;
  const Geometry geometry_;
  const uint64_t context_interval_;
  StreamSwitch switch_;
  LatencyModel latency_;
  Media media_;
  Greedy victim_;
  StreamRouter router_;
  Ftl ftl_;
  uint64_t since_context_ = 0;  // host pages
  uint32_t blocks_read_ = 0;
};

}  // namespace streamfs::ssd::emmc
