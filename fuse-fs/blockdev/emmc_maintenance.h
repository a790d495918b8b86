// Runs the background operations of an eMMC card: starts them when the card's status asks for them,
// and interrupts them (HPI) at the next request.
//
// The kernel neither starts manual background operations nor knows that they run, so a request that
// reaches a busy card fails. They are therefore started only on a whole card, which is opened
// exclusively, and only while no request is in flight. Each request first waits for the interrupt.
// A card whose background operations are automatic, not enabled, or cannot be interrupted is left
// alone. The bit that enables them is never set, because it cannot be cleared.
// Thread safety, crash: block_maintenance.h.
#pragma once

#include <linux/mmc/ioctl.h>

#include <atomic>
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "fuse-fs/blockdev/block_maintenance.h"
#include "fuse-fs/blockdev/mmc_command.h"

namespace streamfs::blockdev {

class EmmcMaintenance final : public BlockMaintenance {
 public:
  // Sends a command by ioctl(MMC_IOC_CMD). Returns 0 or an errno.
  using Send = std::function<int(mmc_ioc_cmd&)>;
  // `card` is the card's relative address. Never fails: if the card cannot be used, capabilities()
  // says why.
  static std::unique_ptr<EmmcMaintenance> open(Send send, uint16_t card);

  IdleCapabilities capabilities() const override;
  Pressure pressure() override;
  Result<IdleWork> begin() override;
  Result<void> end() override;
  Result<IdleWork> prepare_poweroff(const IdleLimits& limits) override;
  void request_begins() override;
  void request_ended() override { --requests_; }

 private:
  EmmcMaintenance(Send send, uint16_t card) : send_(std::move(send)), card_(card) {}
  Result<mmc::BackgroundOperations> look();
  Result<bool> start(uint8_t least_status);
  Result<bool> ready();
  Result<void> interrupt();

  const Send send_;
  const uint16_t card_;
  mmc::BackgroundOperations known_;    // EXT_CSD at open
  std::atomic<uint64_t> requests_{0};  // in flight
  std::atomic<bool> working_{false};   // started, and not known to have ended
  std::atomic<uint8_t> status_{0};     // BKOPS_STATUS when EXT_CSD was last read
  Mutex turn_;                         // leaf; held over a sequence of commands to the card
};

}  // namespace streamfs::blockdev
