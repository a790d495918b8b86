// An eMMC card whose contexts are pStreams: "mmc:/dev/mmcblkN", or "mmc:IMAGE" for the emulated
// card.
//
// Writes to a pStream other than the default one are CMD23 with the context's id and CMD25, sent by
// MMC_IOC_MULTI_CMD in the caller's thread. All other requests go to the device beneath, which is
// the card's block device or the emulated SSD. The card executes one command after the other, so
// both ways see each other's writes.
//
// Contexts are opened for writing at open and closed at the end. Data of an open context is not
// trusted to survive a power cut: flush() closes each context that was written since the last flush
// and opens it again. A reset of the card closes its contexts: a refused write opens its
// context again and is sent once more.
// EXT_CSD[133], by which Vishwakarma (2019) tells streams from contexts, is
// PRODUCTION_STATE_AWARENESS of a real card, and is never written.
//
// Thread safety, errors and crashes: see device.h. Statistics of the default pStream on a real card
// are those of its block device.
#pragma once

#include <linux/mmc/ioctl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/block_maintenance.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/forwarding_device.h"
#include "fuse-fs/blockdev/idle.h"
#include "fuse-fs/blockdev/mmc_command.h"

namespace streamfs::blockdev {

class MmcDevice final : public ForwardingDevice {
 public:
  // Sends a sequence of commands, which no other request interrupts. Returns 0 or an errno.
  using Send = std::function<int(std::span<mmc_ioc_cmd>)>;
  struct Card {
    std::unique_ptr<Device> beneath;
    Send send;                                // uses `beneath` or what it owns
    uint16_t address = 1;                     // relative
    BlockMaintenance* maintenance = nullptr;  // of `beneath`; may be null
    bool read_only = false;
  };

  // Opens the whole card or an image made with ssd-sim create --ftl emmc. Errors: those of
  // open_device; EINVAL for a partition or another kind of device; EOPNOTSUPP for a card without
  // contexts.
  static Result<std::unique_ptr<MmcDevice>> open(const std::string& path,
                                                 const OpenOptions& options);
  static Result<std::unique_ptr<MmcDevice>> make(Card card);
  ~MmcDevice() override;

  const DeviceInfo& info() const override { return info_; }
  void write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) override;
  Result<void> flush() override;
  Result<IdleWork> prepare_poweroff(const IdleLimits& limits) override;
  Result<DeviceStats> stats() override;
  Placement placement(PStreamId stream) const override;

 private:
  explicit MmcDevice(Card card);
  Result<void> open_contexts();
  Result<void> send(std::span<mmc_ioc_cmd> sequence) SFS_REQUIRES(turn_);
  Result<void> await_ready() SFS_REQUIRES(turn_);
  Result<void> renew(uint8_t context) SFS_REQUIRES(turn_);
  Result<void> close_written();
  Result<void> write_some(uint64_t first_sector, ConstBytes bytes, uint8_t context)
      SFS_REQUIRES(turn_);

  const Card card_;
  DeviceInfo info_;
  Mutex turn_;  // held over a sequence of commands and the card's work on it; locked before those
                // of the maintenance and of the emulated SSD
  std::array<bool, mmc::kMostContexts + 1> written_
      SFS_GUARDED_BY(turn_){};  // since the last flush
  std::array<std::atomic<uint64_t>, mmc::kMostContexts + 1> context_bytes_{};
};

}  // namespace streamfs::blockdev
