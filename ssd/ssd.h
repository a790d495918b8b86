// The emulated multi-stream SSD in one image file: 4 KiB pages on emulated NAND that keeps the
// rules of real NAND (media/image_media.h). The image says which FTL it has (FtlKind).
//
// Thread safety: every method from any thread; writes, trims and flushes run one at a time, reads
// beside each other. The image is locked while open. Media I/O runs in the caller's thread under
// the lock and ends in the page cache.
//
// After a crash of the process: with power-loss protection every write and trim that returned is
// kept; of one in progress, each page is kept or not. Without it, trims are kept, too, but pages
// written since the last flush are lost unless their wordline was filled, and their addresses read
// as before. A power cut inside a NAND operation (NandFaults) has the same result; from then on
// write(), trim(), flush() and release() fail with EIO until the image is opened again. Death of
// the machine: see layout.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ssd/background.h"
#include "ssd/ftl/firmware.h"
#include "ssd/idle_work.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/media/nand_faults.h"
#include "ssd/real_time.h"
#include "ssd/stats.h"

namespace streamfs::ssd {

// NVMe's directive types: dspec is a stream or an FDP placement identifier (with one reclaim group,
// the handle's number). stream_of() returns the default stream for any other type.
inline constexpr uint8_t kStreamsDirective = 1, kPlacementDirective = 2;
PStreamId stream_of(uint8_t dtype, uint16_t dspec);

struct SsdOptions {
  bool read_only = false;
  double real_time = 0;          // wall latency ÷ model latency; 0: off, no waiting
  bool streams_off = false;      // all writes on stream 0, copies on their own frontier
  double wait_seconds = 0;       // for another holder of the image
  NandFaults* faults = nullptr;  // outlives the Ssd; null: failures at the image's rates
};

class Ssd {
 public:
  // Errors: those of Image::open; EIO for a power cut during recovery or damaged tables of the FTL.
  static Result<std::unique_ptr<Ssd>> open(const std::string& path, const SsdOptions& options);

  const Geometry& geometry() const { return geometry_; }
  const std::string& uuid() const { return image_->uuid(); }

  // Writes whole pages of 4 KiB; a map unit that is covered in part is read, changed and written. A
  // pStream that the device does not have counts as the default one, as in NVMe. In real time,
  // `acknowledged` gets the time before which the host must not see the result, in read() and
  // flush() too. Errors: EINVAL beyond the device, EROFS, ENOSPC when no block can be freed or too
  // many are bad (then reads and trims still work), EIO. After ENOSPC and EIO a prefix of the pages
  // may be written.
  Result<void> write(uint64_t page, ConstBytes bytes, VStreamId vstream, PStreamId pstream,
                     Acknowledgement* acknowledged = nullptr);
  // Reads whole pages of 4 KiB; pages without data are zeroes and cost no time. Errors: EINVAL
  // beyond the device; EIO, which is counted, for data that does not fit its checksum.
  Result<void> read(uint64_t page, Bytes bytes, Acknowledgement* acknowledged = nullptr);
  // Frees the map units that lie wholly inside the range; the rest keeps its content.
  // Errors: EINVAL beyond the device, EROFS, EIO.
  Result<void> trim(uint64_t page, uint64_t count);
  // Makes all writes that returned survive a power cut. Does nothing on a read-only device.
  // Errors: ENOSPC, EIO.
  Result<void> flush(Acknowledgement* acknowledged = nullptr);
  // The host expects no write to the pStream for long: closes its open block, so that it can be
  // collected, unless free blocks are few or the device has no power-loss protection. Errors: EIO.
  Result<void> release(PStreamId pstream);

  // Works while the host is idle, until a limit is met or no work is left: collects garbage up to
  // the wanted free blocks, by default as many as recent bursts took, then levels wear. From any
  // thread; the host waits for one step at most. In real time it is no faster than the flash.
  // Counters::idle_gc_pages and wear_pages count its copies, as parts of gc_pages. Does nothing on
  // a read-only device.
  IdleReport run_idle(const IdleLimits& limits);
  Urgency urgency(const IdleLimits& limits = {});
  Wear wear();

  SsdStats stats();
  void reset_stats();  // does nothing on a read-only device

  // Calls `with` for what only one kind of firmware has. `with` must not change the counters.
  template <typename With>
  auto with_firmware(const With& with) {
    const WriteLock lock(ftl_mutex_);
    return with(*firmware_);
  }

 private:
  // Brackets a change of the counters that other processes see.
  class Change {
   public:
    explicit Change(Ssd& ssd) : ssd_(ssd), update_(ssd.image_->shared()) {}
    ~Change() { ssd_.live().occupied_blocks = ssd_.units_.blocks - ssd_.firmware_->free_blocks(); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    Ssd& ssd_;
    SharedUpdate update_;
  };

  Ssd(std::unique_ptr<Image> image, const Geometry& geometry, const SsdOptions& options);
  Result<void> recover();
  NandFaults* faults_for(const SsdOptions& options);
  Result<void> powered(Result<void> done) const;
  Result<void> check_range(uint64_t page, uint64_t count) const;
  Ppn place_of(uint64_t page) const;
  uint32_t run_at(uint64_t page, uint64_t most) const;
  void acknowledge(Acknowledgement* acknowledged, uint64_t ns) const;
  Error read_error(int error, uint64_t page, uint32_t pages);
  IdleReport idle_steps(const IdleLimits& limits);
  bool idle_time_is_over(const IdleLimits& limits);
  bool idle_step(const IdleLimits& limits, uint32_t most, IdleReport& report,
                 Acknowledgement& done);
  int write_units(uint64_t page, ConstBytes bytes, VStreamId vstream, uint16_t stream);
  int write_part(uint64_t page, ConstBytes bytes, VStreamId vstream, uint16_t stream);
  Counters& counters() { return read_only_ ? idle_.now : image_->shared().now; }
  LiveCounts& live() { return read_only_ ? idle_.live : image_->shared().live; }

  const bool read_only_;
  const bool streams_off_;
  const RealTime real_time_;
  const Geometry geometry_;
  const Geometry units_;  // the same in map units, for the FTL and the media
  std::vector<std::byte> unit_buffer_;
  std::unique_ptr<Image> image_;
  SharedState idle_{};  // counters of a read-only device

  // Lock order: ftl_mutex_, then reading_mutex_.
  SharedMutex ftl_mutex_;  // exclusive for changes of the members below; shared for reads
  Mutex reading_mutex_;    // protects counters and latency_ while ftl_mutex_ is shared
  LatencyModel latency_;
  SeededFailures own_faults_;
  const std::unique_ptr<Firmware> firmware_;
  Bursts bursts_;
};

// Return and reset the statistics of an image that another process may hold.
// Errors: those of Image::open.
Result<SsdStats> observe_stats(const std::string& path, Geometry* geometry = nullptr,
                               std::string* uuid = nullptr);
Result<void> reset_stats(const std::string& path);

}  // namespace streamfs::ssd
