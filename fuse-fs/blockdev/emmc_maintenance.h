// Background operations of an eMMC card: started when its status asks for them, interrupted (HPI)
// by the first request.
//
// The kernel starts none itself where they are manual, and does not know of ours: a request that
// came to the card while it is busy would be an error. So they are started only on a whole card,
// which nobody else can have open for writing, with no request of ours on its way, and each request
// waits for the interrupt. A card whose background operations are automatic, or cannot be
// interrupted, is left alone; so is the bit that allows them, which can never be taken back.
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
  // ioctl(MMC_IOC_CMD) of a card; errno of a failure, else 0.
  using Send = std::function<int(mmc_ioc_cmd&)>;
  // `card`: its relative address. Whatever the card says, it comes to something: see
  // capabilities().
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
  mmc::BackgroundOperations known_;    // by the first look
  std::atomic<uint64_t> requests_{0};  // on their way
  std::atomic<bool> working_{false};   // started, and not known to have ended
  std::atomic<uint8_t> status_{0};     // by the last look
  Mutex turn_;                         // leaf; commands of ours, one at a time
};

}  // namespace streamfs::blockdev
