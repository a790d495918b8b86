// The data device: 4 KiB blocks, asynchronous reads and writes, each write with a placement.
//
// Thread safety: every method may be called from any thread. A completion runs exactly once, on the
// caller's thread, there or in its next uring::drive(), or on the device's own; it must not block
// and must not call flush() or trim(). Whoever is no IoBatch drives until its requests are done.
// Two writes to one block in flight at once are the caller's mistake: their order is undefined. A
// read beside a write may give any mixture of the old and the new.
//
// What a crash leaves: a write completed before a flush() that returned ok is durable. Any other
// write may be there, not there, or torn at 512-byte sectors. A trimmed block reads as zeroes, or
// as what it held if the trim was not followed by a flush.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/idle.h"

namespace streamfs::blockdev {

// How a write command says where its data belongs (NVMe base spec 2.0, directives; for block
// devices write_streams.h).
struct Placement {
  uint8_t dtype = 0;   // 0 none, 1 Streams, 2 data placement (FDP), 16 a write stream
  uint16_t dspec = 0;  // stream id or placement id
  friend bool operator==(const Placement&, const Placement&) = default;
};

// What travels with a write beside its bytes. The vStream is for devices that keep it (the emulated
// SSD's spare area); others ignore it.
struct WriteTag {
  Placement placement;
  VStreamId vstream;
};

struct DeviceInfo {
  std::string kind;  // "emulated", "file", "block", "nvme"
  std::string path;
  std::string identity;  // stable name of this very device (serial, uuid, inode), never empty
  uint64_t capacity_blocks = 0;
  uint16_t pstream_count = 1;      // including the default, 0
  uint64_t erase_unit_blocks = 1;  // trims aligned to this free whole erase units
  bool flush_is_free = false;      // power-loss protected: a flush programs nothing
  std::string mechanism = "none";  // how a write says its pStream, for people
  std::string why;                 // where there is one pStream, the reason, if one is known
  std::string transport;           // how requests go to it, for people
  // Where it puts what garbage collection copies: the "same" pStream, open blocks of each pStream's
  // "own", "shared" ones of all. Empty: it does not tell.
  std::string gc_mode = "";
  double spare = 0;  // physical ÷ capacity − 1; 0: it does not tell
  // Of a trim only whole units are freed: block numbers that leave trim_offset_blocks when divided
  // by trim_unit_blocks begin one.
  uint64_t trim_unit_blocks = 1, trim_offset_blocks = 0;
};

struct StreamStats {
  uint64_t written_bytes = 0;  // by the host
  uint64_t gc_bytes = 0;       // copied by garbage collection into this stream
};

// Totals since the device was made. nand_known is false where the device does not tell; of what is
// behind nand_bytes, inside_known is, where it tells only those.
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
  uint64_t media_errors = 0;  // reads of data that the device lost, and says so
  uint64_t live_bytes = 0;
  uint64_t peak_live_bytes = 0;
  uint64_t physical_bytes = 0;
  double effective_spare = 0;                                          // physical ÷ peak live − 1
  double latency_p50_us = 0, latency_p99_us = 0, latency_p999_us = 0;  // virtual clock, writes
  std::vector<StreamStats> streams;
};

using Completion = std::function<void(Result<void>)>;

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  // Blocks it has now: those of a file or block device that has become larger can be used from the
  // moment this says so. info() goes on saying how many there were at open.
  virtual Result<uint64_t> measure() { return info().capacity_blocks; }
  // EMEDIUMTYPE: as far as the device itself tells it is not what was opened any more (it was
  // formatted, say), and no request means what it did.
  virtual Result<void> check_same() { return {}; }
  // Lengths are multiples of kBlockSize; buffers stay alive and unchanged until the completion.
  virtual void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) = 0;
  virtual void read(BlockNo first, Bytes bytes, Completion done) = 0;
  virtual Result<void> flush() = 0;  // covers every write completed before the call
  virtual Result<void> trim(BlockNo first, uint64_t count) = 0;
  virtual Result<DeviceStats> stats() = 0;
  // The placement that puts a write on this pStream; {} for pStreams the device does not have.
  virtual Placement placement(PStreamId stream) const = 0;
  // Nothing more comes for this pStream for long: what the device keeps open for it is free for
  // others. A later write takes it again. Does nothing where a device has no such command.
  virtual Result<void> release(PStreamId) { return {}; }

  // ---- Maintenance. begin_idle(), end_idle() and prepare_poweroff() are for one thread at a time.
  virtual IdleCapabilities capabilities() const { return {}; }
  virtual Pressure pressure() { return Pressure::kUnknown; }
  // The host sends nothing now. kInCall: works in the caller's thread until limits.stop says so or
  // nothing is left worth doing; the host waits for one step at most. kByItself: returns at once.
  virtual Result<IdleWork> begin_idle(const IdleLimits&) { return IdleWork{}; }
  virtual Result<void> end_idle() { return {}; }  // the host sends again
  // Work that is better done before the power goes, as begin_idle(); then a flush. The more blocks
  // are free then, the faster the next writes are.
  virtual Result<IdleWork> prepare_poweroff(const IdleLimits&) {
    SFS_TRY(flush());
    return IdleWork{};
  }
};

// Opens DATA: "emu:PATH" (an emulated SSD made by ssd-sim), a regular file or a block device, an
// NVMe namespace (/dev/ngXnY), or "nvme:streams:PATH" and "nvme:fdp:PATH": the emulated SSD spoken
// to as an NVMe controller that has Streams or FDP. Holds an exclusive lock while open; waits up to
// `wait_seconds` for another holder, then EBUSY. Errors: ENOENT, EACCES, EBUSY, ENOTBLK (not a
// device or file), EINVAL (foreign emulator image, real time of what is none).
struct OpenOptions {
  double wait_seconds = 10;
  bool read_only = false;
  double real_time = 0;  // emulated SSDs: answer when the flash would, times this; 0: at once
};
Result<std::unique_ptr<Device>> open_device(const std::string& data, const OpenOptions& options);
// Errors: EINVAL for blocks beyond `capacity`.
Result<void> check_range(BlockNo first, uint64_t blocks, uint64_t capacity);
// The path in DATA, without what says how to use it.
std::string_view path_of(std::string_view data);

// Issues requests and waits for all of them; for callers that may block.
class IoBatch {
 public:
  explicit IoBatch(Device& device) : device_(device) {}
  ~IoBatch() { (void)wait(); }
  IoBatch(const IoBatch&) = delete;
  IoBatch& operator=(const IoBatch&) = delete;
  void write(BlockNo first, ConstBytes bytes, WriteTag tag);
  void read(BlockNo first, Bytes bytes);
  void submit();        // for a caller who has something to do before wait()
  Result<void> wait();  // the first error of the batch, if any

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
