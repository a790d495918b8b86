// A regular file or a block device as the data device.
//
// Each write, trim and flush compares the file's size with the largest size that open() or a
// measure() has found. Once the file is shorter than that, all writes, trims and flushes fail with
// EIO for good: a write past the end would extend the file again, with zeroes in place of the lost
// data. Reads go on.
//
// Uses direct I/O if the file supports it (an unaligned buffer is copied), else the page cache.
// flush() is fdatasync. trim() punches a hole in a file and sends a discard to a block device, for
// the whole units inside the range (discard.h). Discarded blocks may read as anything until they
// are written. (No request for zeroes is sent, because the device may program the zeroes.) A file
// or device without support ignores trims. pStreams are the kernel's write streams if the block
// device has them (write_streams.h), else there is one. Idle time is used on eMMC and UFS
// (block_maintenance.h).
//
// Thread safety and crashes: see device.h. Statistics are counted since open and have no figures of
// the NAND.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "fuse-fs/blockdev/block_maintenance.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/discard.h"
#include "fuse-fs/blockdev/io_engine.h"
#include "fuse-fs/nvme/discovery.h"

namespace streamfs::blockdev {

class FileDevice final : public Device {
 public:
  // Errors: see open_device.
  static Result<std::unique_ptr<FileDevice>> open(const std::string& path,
                                                  const OpenOptions& options);
  ~FileDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Result<uint64_t> measure() override;
  void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) override;
  void read(BlockNo first, Bytes bytes, Completion done) override;
  Result<void> flush() override;
  Result<void> trim(BlockNo first, uint64_t count) override;
  Result<DeviceStats> stats() override;
  Placement placement(PStreamId stream) const override;
  BlockMaintenance* maintenance() { return maintenance_.get(); }  // null for most devices

  IdleCapabilities capabilities() const override;
  Pressure pressure() override;
  Result<IdleWork> begin_idle(const IdleLimits& limits) override;
  Result<void> end_idle() override;
  Result<IdleWork> prepare_poweroff(const IdleLimits& limits) override;

 private:
  FileDevice(int fd, bool is_block, bool read_only)
      : fd_(fd), is_block_(is_block), read_only_(read_only) {}
  void use_block_device(const struct stat& st);
  void choose_placement(const struct stat& st);
  Result<void> check(BlockNo first, uint64_t blocks) const;
  Result<void> check_whole();
  bool needs_copy(const std::byte* data) const;
  Result<void> discard(uint64_t offset, uint64_t size);
  Completion counted(Completion done);

  const int fd_;
  const bool is_block_;
  const bool read_only_;
  size_t memory_alignment_ = 1;  // of buffers for direct I/O; 1: the page cache is used
  DeviceInfo info_;
  std::atomic<uint64_t> capacity_blocks_{0};  // at the last measure()
  std::atomic<uint64_t> bytes_{0};            // the largest size found by open() or measure()
  std::atomic<bool> cut_short_{false};        // the file was truncated; never cleared
  DiscardUnits discards_;
  std::unique_ptr<BlockMaintenance> maintenance_;  // null for most devices
  std::unique_ptr<IoEngine> engine_;
  std::atomic<uint64_t> written_bytes_{0}, read_bytes_{0}, trimmed_bytes_{0}, flushes_{0};
  std::array<std::atomic<uint64_t>, nvme::kMostPStreams> stream_bytes_{};
};

}  // namespace streamfs::blockdev
