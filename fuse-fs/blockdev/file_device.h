// A regular file or a block device as the data device.
//
// A file that has become shorter while it is open fails every write, trim and flush from then on
// with EIO: a write past its end would make it longer again, with zeroes for what was lost.
//
// Direct I/O where the file takes it (a buffer that is not aligned is copied), else the page cache.
// flush() is fdatasync. trim() punches holes in a file; a block device it sends a discard, after
// which blocks may read as anything until they are written (zeroing them instead may program them).
// What can do neither ignores trims. pStreams are the kernel's write streams where a block device
// has them (write_streams.h), else there is one. A block device's discards are cut inward to whole
// units of what it frees; idle time is eMMC's and UFS's (block_maintenance.h).
//
// Thread safety and crashes: see device.h. Statistics are counted since open; the NAND is unknown.
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
  size_t memory_alignment_ = 1;  // 1: through the page cache
  DeviceInfo info_;
  std::atomic<uint64_t> capacity_blocks_{0};  // by the last measure()
  std::atomic<uint64_t> bytes_{0};            // the most that the file has had
  std::atomic<bool> cut_short_{false};        // for good: what was lost does not come back
  DiscardUnits discards_;
  std::unique_ptr<BlockMaintenance> maintenance_;  // none for most
  std::unique_ptr<IoEngine> engine_;
  std::atomic<uint64_t> written_bytes_{0}, read_bytes_{0}, trimmed_bytes_{0}, flushes_{0};
  std::array<std::atomic<uint64_t>, nvme::kMostPStreams> stream_bytes_{};
};

}  // namespace streamfs::blockdev
