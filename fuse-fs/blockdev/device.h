// The data device: 4 KiB blocks, asynchronous reads and writes, each write with a placement.
//
// Thread safety: every method may be called from any thread. A completion runs exactly once: on the
// caller's thread, in the call or in its next uring::drive(), or on a thread of the device. It must
// not block and must not call flush() or trim(). A caller that does not use IoBatch must call
// uring::drive() until its requests are done.
// Requires: at most one write to a block is in flight; the order of two is undefined. A read
// concurrent with a write may return any mixture of old and new content.
//
// After a crash: a write completed before a flush() that returned ok is durable. Any other
// write may be there, not there, or torn at 512-byte sectors. A trimmed block reads as zeroes or,
// on a block or NVMe device, as anything. If no flush followed the trim, it may have its old
// content.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/idle.h"

namespace streamfs::blockdev {

// The placement fields of a write command (NVMe base spec 2.0, directives; for block devices
// write_streams.h).
struct Placement {
  uint8_t dtype = 0;   // 0 none, 1 Streams, 2 data placement (FDP), 16 a write stream
  uint16_t dspec = 0;  // stream id or placement id
  friend bool operator==(const Placement&, const Placement&) = default;
};

// The labels of a write. The emulated SSD stores the vStream in its spare area, and a device that
// maps vStreams places by it; other devices ignore it.
struct WriteTag {
  Placement placement;
  VStreamId vstream;
};

struct DeviceInfo {
  std::string kind;  // "emulated", "file", "block", "nvme"
  std::string path;
  std::string identity;            // stable name of this device (serial, uuid, inode), never empty
  uint64_t capacity_blocks = 0;    // at open
  uint16_t pstream_count = 1;      // including the default, 0
  uint64_t erase_unit_blocks = 1;  // trims aligned to this free whole erase units
  bool flush_is_free = false;      // power-loss protected: a flush programs nothing
  std::string mechanism = "none";  // the mechanism that names a write's pStream, for people
  std::string why;                 // why there is one pStream only, if known
  std::string transport;           // the path of requests, for people
  // The blocks into which garbage collection copies: "same" as new writes of the pStream, each
  // pStream's "own", or "shared" by all pStreams. Empty: unknown.
  std::string gc_mode = "";
  double spare = 0;         // physical ÷ capacity − 1; 0: unknown
  std::string victim = "";  // the policy of garbage collection: "greedy" or "cost-benefit"; empty:
                            // unknown
  // A trim frees whole units only. A unit begins at each block whose number leaves the remainder
  // trim_offset_blocks when divided by trim_unit_blocks.
  uint64_t trim_unit_blocks = 1, trim_offset_blocks = 0;
  bool in_process = false;     // the caller's thread executes a request; no interrupt completes it
  bool maps_vstreams = false;  // measures the vStreams of writes and has pStreams for them inside
};

struct StreamStats {
  uint64_t written_bytes = 0;  // by the host
  uint64_t gc_bytes = 0;       // copied by garbage collection into this stream
};

// Totals: of an emulated device since it was made, of others since open. nand_bytes is known if
// nand_known is true. The fields from gc_bytes to latency_p999_us are known if inside_known is true
// as well.
struct DeviceStats {
  uint64_t written_bytes = 0;
  uint64_t read_bytes = 0;
  uint64_t trimmed_bytes = 0;
  uint64_t flushes = 0;
  bool nand_known = false;
  bool inside_known = true;
  uint64_t nand_bytes = 0;  // programmed: user + GC + padding
  uint64_t gc_bytes = 0;
  uint64_t pad_bytes = 0;
  uint64_t erases = 0;
  uint64_t media_errors = 0;  // reads that failed because the device lost the data
  uint64_t live_bytes = 0;
  uint64_t peak_live_bytes = 0;
  uint64_t physical_bytes = 0;
  double effective_spare = 0;                                          // physical ÷ peak live − 1
  double latency_p50_us = 0, latency_p99_us = 0, latency_p999_us = 0;  // virtual clock, writes
  std::vector<StreamStats> streams;
  // Numbers that only this emulated SSD's FTL has; the names are literals.
  std::vector<std::pair<std::string_view, uint64_t>> ftl_counts;
};

using Completion = std::function<void(Result<void>)>;

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  // Returns the current number of blocks. Blocks that a file or block device has gained can be used
  // once this was called. info() keeps the number at open.
  virtual Result<uint64_t> measure() { return info().capacity_blocks; }
  // Errors: EMEDIUMTYPE if the device reports that it was formatted or replaced since open.
  virtual Result<void> check_same() { return {}; }
  // Transfer whole blocks. Require: lengths are multiples of kBlockSize; buffers stay alive and
  // unchanged until the completion.
  // Errors, in the completion: EINVAL beyond the device's end; EROFS if it is open for reading; EIO
  // and others of the device.
  virtual void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) = 0;
  virtual void read(BlockNo first, Bytes bytes, Completion done) = 0;
  virtual Result<void> flush() = 0;  // covers every write completed before the call
  virtual Result<void> trim(BlockNo first, uint64_t count) = 0;
  virtual Result<DeviceStats> stats() = 0;
  // Returns the placement for a write to this pStream; {} if the device does not have it.
  virtual Placement placement(PStreamId stream) const = 0;
  // Frees the device's resources of a pStream that will not be written for long. A later write
  // takes them again. Does nothing if the device has no such command.
  virtual Result<void> release(PStreamId) { return {}; }

  // ---- Maintenance. begin_idle(), end_idle() and prepare_poweroff() are for one thread at a time.
  virtual IdleCapabilities capabilities() const { return {}; }
  virtual Pressure pressure() { return Pressure::kUnknown; }
  // Begins idle time. kInCall: works in the caller's thread until limits.stop returns true or no
  // work is left; other requests wait for one step at most. kByItself: returns at once.
  virtual Result<IdleWork> begin_idle(const IdleLimits&) { return IdleWork{}; }
  virtual Result<void> end_idle() { return {}; }  // ends idle time
  // Flushes, then does the work that is best done before the power goes, as begin_idle() does. Free
  // blocks make the next writes faster.
  virtual Result<IdleWork> prepare_poweroff(const IdleLimits&) {
    SFS_TRY(flush());
    return IdleWork{};
  }
};

struct OpenOptions {
  double wait_seconds = 10;  // for another holder of the device
  bool read_only = false;
  double real_time = 0;  // emulated SSDs: factor on the latency of the flash; 0: answer at once
};
// Opens DATA: "emu:PATH" (an emulated SSD made by ssd-sim), a regular file or a block device, an
// NVMe namespace (/dev/ngXnY), "nvme:streams:PATH" and "nvme:fdp:PATH": the emulated SSD as an NVMe
// controller with Streams or FDP, or "mmc:PATH": an eMMC card by its contexts (mmc_device.h). The
// device is locked exclusively while open.
// Errors: ENOENT, EACCES, EROFS (read-only device opened for writing), EBUSY (another holder after
// wait_seconds), ENOTBLK (neither device nor file), EINVAL (foreign image of an SSD, smaller than a
// block, unknown nvme: form, or real_time for a device that is not emulated); for an NVMe namespace
// those of nvme::discover() and PassthroughController::open(), too; for mmc: those of MmcDevice.
Result<std::unique_ptr<Device>> open_device(const std::string& data, const OpenOptions& options);
// Returns EINVAL if one of these blocks lies beyond `capacity`.
Result<void> check_range(BlockNo first, uint64_t blocks, uint64_t capacity);
// Returns the path in DATA, without the prefix that names the kind.
std::string_view path_of(std::string_view data);

// Issues requests and waits for all of them, for a caller that may block.
// Thread safety: one thread issues and waits; completions may run on others.
class IoBatch {
 public:
  explicit IoBatch(Device& device) : device_(device) {}
  ~IoBatch() { (void)wait(); }
  IoBatch(const IoBatch&) = delete;
  IoBatch& operator=(const IoBatch&) = delete;
  void write(BlockNo first, ConstBytes bytes, WriteTag tag);
  void read(BlockNo first, Bytes bytes);
  void submit();        // sends the requests now, for a caller with other work before wait()
  Result<void> wait();  // returns the first error of the batch, if any

 private:
  Completion completion();
  bool busy();
  Device& device_;
  Mutex mutex_;  // leaf
  CondVar done_;
  uint64_t in_flight_ SFS_GUARDED_BY(mutex_) = 0;
  Result<void> first_error_ SFS_GUARDED_BY(mutex_);
};

}  // namespace streamfs::blockdev
