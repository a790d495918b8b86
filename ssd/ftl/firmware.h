// The firmware of an emulated SSD: an FTL on the flash of an image file, with its power-up.
// ssd/ssd.h is the host's side of it.
//
// Pages are map units, except in read(). write(), flush() and read() return errno values, 0 for
// none; read() also returns kDataDamaged (media/image_media.h). `stream` is below the geometry's
// number of streams.
// Thread safety: none; the SSD's lock. The const calls may run beside each other. A Firmware that
// writes to another stream than it is told needs a map unit of one page, because Ssd corrects the
// counters of the stream that it named.
// After a crash: see ssd/ssd.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ssd/geometry.h"
#include "ssd/idle_work.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/layout.h"
#include "ssd/media/nand_faults.h"

namespace streamfs::ssd {

// All but `geometry` outlive the firmware.
struct FirmwareParts {
  Image& image;
  Geometry geometry;   // in map units
  SharedState& state;  // its counters; the image's, unless `read_only`
  LatencyModel& latency;
  NandFaults* faults;  // may be null
  bool read_only;      // write(), trim(), flush(), release() and idle_step() are not called, and
                       // the other calls change nothing
};

struct Wear {
  uint32_t least, most;  // erases of good blocks
};

class Firmware {
 public:
  virtual ~Firmware() = default;

  // Finds what the flash has. Call it first; after an error call nothing else. A power cut is no
  // error, and shows in powered(). Errors: EIO for tables that no power cut explains.
  virtual Result<void> power_up() = 0;
  // Returns false after a power cut; no later call changes the flash.
  virtual bool powered() const = 0;

  // After an error a prefix of the pages, perhaps empty, is written.
  virtual int write(Lpn first, uint32_t count, uint16_t stream, uint16_t vstream,
                    const std::byte* data) = 0;
  virtual void trim(Lpn page) = 0;
  virtual int flush() = 0;
  virtual Ppn location(Lpn page) const = 0;  // kNoPage: not mapped
  // Reads pages of 4 KiB that are adjacent on the flash.
  virtual int read(Ppn first, std::byte* data, uint32_t pages) const = 0;
  // The host expects no write to the stream for long.
  virtual void release(uint16_t stream) = 0;

  virtual size_t free_blocks() const = 0;
  virtual IdleStep idle_step(const IdleLimits& limits, uint32_t most) = 0;
  virtual double host_victim_share() = 0;  // PageMap::host_victim_share()
  virtual Wear wear() const = 0;
};

}  // namespace streamfs::ssd
