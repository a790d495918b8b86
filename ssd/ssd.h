// The emulated multi-stream SSD in one image file: 4 KiB pages, page-mapped, garbage-collected,
// with honest NAND beneath (media/image_media.h).
//
// Thread safety: every method from any thread; writes, trims and flushes one at a time, reads
// beside each other. The image is locked while open. Media I/O is done in the caller's thread under
// the lock: it ends in the page cache. Crash of the process: with power-loss protection every write
// and trim that returned is kept; one that was under way is there page by page or not. Without it,
// the pages since the last flush that had not filled a wordline are lost and their blocks read as
// before. A power cut inside a NAND operation (NandFaults) is survived in the same way; from then
// on every call fails with EIO until the image is opened anew. Death of the machine: see layout.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ssd/background.h"
#include "ssd/ftl/page_map.h"
#include "ssd/idle_work.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/media/image_media.h"
#include "ssd/media/nand_faults.h"
#include "ssd/real_time.h"
#include "ssd/stats.h"
#include "ssd/victim/greedy.h"

namespace streamfs::ssd {

// NVMe's directive types: dspec is a stream or an FDP placement identifier (of the one reclaim
// group that there is: a handle's number). Any other type is no directive: the default stream.
inline constexpr uint8_t kStreamsDirective = 1, kPlacementDirective = 2;
PStreamId stream_of(uint8_t dtype, uint16_t dspec);

struct SsdOptions {
  bool read_only = false;
  double real_time = 0;          // latencies on the wall ÷ the model's; 0: none, no waiting
  bool streams_off = false;      // everything on stream 0, copies on a frontier of their own
  double wait_seconds = 0;       // for another holder of the image
  NandFaults* faults = nullptr;  // outlives the Ssd; none: failures at the image's rates
};

class Ssd {
 public:
  // Errors: those of Image::open.
  static Result<std::unique_ptr<Ssd>> open(const std::string& path, const SsdOptions& options);

  const Geometry& geometry() const { return geometry_; }
  const std::string& uuid() const { return image_->uuid(); }

  // Whole pages of 4 KiB; a map unit written in part is read, changed and written. Errors: EINVAL
  // beyond the device, EROFS, ENOSPC when no block can be freed or too many went bad
  // (for good: reads and trims go on), EIO. A pStream that the device does not have is the default
  // one, as NVMe has it. In real time, `acknowledged` says when the host may hear of it.
  Result<void> write(uint64_t page, ConstBytes bytes, VStreamId vstream, PStreamId pstream,
                     Acknowledgement* acknowledged = nullptr);
  // Zeroes where nothing was written. EIO, and counted, where data does not fit its checksum.
  // What was never written costs no time.
  Result<void> read(uint64_t page, Bytes bytes, Acknowledgement* acknowledged = nullptr);
  // Frees the map units that lie wholly inside; the rest keeps its content.
  Result<void> trim(uint64_t page, uint64_t count);
  Result<void> flush(Acknowledgement* acknowledged = nullptr);
  // Nothing more comes for the pStream for long: its open block is closed, and can be collected.
  Result<void> release(PStreamId pstream);

  // Works while the host is idle, until a limit is met or nothing is left worth doing: collects
  // garbage up to the wanted free blocks, as many as the host's bursts took lately, then levels
  // wear. From any thread; the host waits for one step at most, and, in real time, it goes no
  // faster than the flash. What it copies is counted apart. Nothing on a read-only device.
  IdleReport run_idle(const IdleLimits& limits);
  Urgency urgency(const IdleLimits& limits = {});
  struct Wear {
    uint32_t least, most;  // erases of good blocks
  };
  Wear wear();

  SsdStats stats();
  void reset_stats();

 private:
  using Ftl = PageMap<ImageMedia, Greedy, StreamRouter>;

  // Brackets a change of what other processes see.
  class Change {
   public:
    explicit Change(Ssd& ssd) : ssd_(ssd), update_(ssd.image_->shared()) {}
    ~Change() { ssd_.live().occupied_blocks = ssd_.units_.blocks - ssd_.ftl_.free_blocks(); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    Ssd& ssd_;
    SharedUpdate update_;
  };

  Ssd(std::unique_ptr<Image> image, const Geometry& geometry, const SsdOptions& options);
  void recover();
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
  int write_units(uint64_t page, ConstBytes bytes, VStreamId vstream, FrontierId frontier);
  int write_part(uint64_t page, ConstBytes bytes, VStreamId vstream, FrontierId frontier);
  Counters& counters() { return read_only_ ? idle_.now : image_->shared().now; }
  LiveCounts& live() { return read_only_ ? idle_.live : image_->shared().live; }

  const bool read_only_;
  const bool streams_off_;
  const RealTime real_time_;
  const Geometry geometry_;
  const Geometry units_;  // the same in map units: what lies below sees only those
  std::vector<std::byte> unit_buffer_;
  std::unique_ptr<Image> image_;
  SharedState idle_{};  // counters of a read-only device

  // Lock order: ftl_mutex_, then reading_mutex_.
  SharedMutex ftl_mutex_;  // exclusive for changes of anything below; shared for reads
  Mutex reading_mutex_;    // counters and latency_ while ftl_mutex_ is shared
  LatencyModel latency_;
  SeededFailures own_faults_;
  ImageMedia media_;
  Greedy victim_;
  StreamRouter router_;
  Ftl ftl_;
  Bursts bursts_;
};

// For an image that another process may hold.
Result<SsdStats> observe_stats(const std::string& path, Geometry* geometry = nullptr,
                               std::string* uuid = nullptr);
Result<void> reset_stats(const std::string& path);

}  // namespace streamfs::ssd
