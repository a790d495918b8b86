#include "fuse-fs/blockdev/emmc_maintenance.h"

#include <linux/mmc/ioctl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "fuse-fs/blockdev/idle.h"
#include "fuse-fs/blockdev/mmc_command.h"

namespace streamfs::blockdev {
namespace {

constexpr uint8_t kWorthIdleTime = 2, kWorthPowerOff = 1;  // BKOPS_STATUS
constexpr uint32_t kHpiMsLeast = 100;                      // cards understate it
constexpr std::chrono::milliseconds kLookAgain{1};
// The kernel may put a card to sleep after 3 s without a request, which a busy card refuses.
constexpr uint64_t kByItselfMs = 2000;

}  // namespace

std::unique_ptr<EmmcMaintenance> EmmcMaintenance::open(Send send, uint16_t card) {
  std::unique_ptr<EmmcMaintenance> made(new EmmcMaintenance(std::move(send), card));
  if (auto found = made->look(); found.ok()) {
    made->known_ = *found;
  } else {
    spdlog::debug("eMMC: {}", found.error().message());
  }
  return made;
}

IdleCapabilities EmmcMaintenance::capabilities() const {
  if (!known_.supported) return {IdleMeans::kNone, "an eMMC card without background operations"};
  if (known_.automatic)
    return {IdleMeans::kNone, "eMMC background operations, which the card starts by itself"};
  if (!known_.manual)
    return {IdleMeans::kNone,
            "eMMC background operations are not enabled, which can never be undone"};
  if (known_.hpi == mmc::Hpi::kNone)
    return {IdleMeans::kNone, "eMMC background operations that cannot be interrupted"};
  return {IdleMeans::kByItself, "eMMC background operations", kByItselfMs};
}

Result<mmc::BackgroundOperations> EmmcMaintenance::look() {
  mmc::ExtCsd bytes{};
  mmc_ioc_cmd command = mmc::read_ext_csd(bytes);
  if (const int error = send_(command); error != 0) return Error{error, "eMMC: EXT_CSD"};
  const mmc::BackgroundOperations found = mmc::background_operations(bytes);
  status_ = found.status;
  return found;
}

// While the card works it answers nothing, so this returns the last known pressure.
Pressure EmmcMaintenance::pressure() {
  const MutexLock lock(turn_);
  if (!known_.supported) return Pressure::kUnknown;
  if (!working_ && !look().ok()) return Pressure::kUnknown;
  return static_cast<Pressure>(status_.load());
}

// Starts work. If a request comes at the same time, either it sees that work has begun, or this
// sees the request.
Result<bool> EmmcMaintenance::start(uint8_t least_status) {
  const MutexLock lock(turn_);
  if (capabilities().means == IdleMeans::kNone || working_) return false;
  SFS_ASSIGN(const mmc::BackgroundOperations now, look());
  if (now.status < least_status) return false;
  working_ = true;
  if (requests_ != 0) {
    working_ = false;
    return false;
  }
  mmc_ioc_cmd command = mmc::start_background_operations();
  if (const int error = send_(command); error != 0) {
    working_ = false;
    return Error{error, "eMMC: start of background operations"};
  }
  return true;
}

Result<IdleWork> EmmcMaintenance::begin() {
  SFS_TRY(start(kWorthIdleTime));
  return IdleWork{};
}

Result<bool> EmmcMaintenance::ready() {
  mmc_ioc_cmd command = mmc::read_status(card_);
  if (const int error = send_(command); error != 0) return Error{error, "eMMC: status"};
  return mmc::is_ready(command);
}

// Interrupts the card's work, unless it has ended already: then an interrupt would be an error.
Result<void> EmmcMaintenance::interrupt() {
  SFS_ASSIGN(bool done, ready());
  if (!done) {
    mmc_ioc_cmd command = mmc::interrupt(known_.hpi, card_);
    if (const int error = send_(command); error != 0) return Error{error, "eMMC: interrupt"};
  }
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(std::max(known_.hpi_ms, kHpiMsLeast));
  while (!done) {
    SFS_ASSIGN(done, ready());
    if (!done && std::chrono::steady_clock::now() >= until)
      return Error{ETIMEDOUT, "eMMC: background operations go on after an interrupt"};
    if (!done) std::this_thread::sleep_for(kLookAgain);
  }
  return {};
}

Result<void> EmmcMaintenance::end() {
  const MutexLock lock(turn_);
  if (!working_) return {};
  Result<void> done = interrupt();
  working_ = false;
  return done;
}

void EmmcMaintenance::request_begins() {
  ++requests_;
  if (!working_) return;
  if (const auto ended = end(); !ended.ok()) spdlog::warn("{}", ended.error().message());
}

Result<IdleWork> EmmcMaintenance::prepare_poweroff(const IdleLimits& limits) {
  SFS_ASSIGN(const bool started, start(kWorthPowerOff));
  IdleWork work;
  while (started && working_) {
    {
      const MutexLock lock(turn_);
      SFS_ASSIGN(const bool done, ready());
      if (done) working_ = false;
    }
    if (!working_) break;
    work.finished = !limits.stop || !limits.stop();
    if (!work.finished) break;
    std::this_thread::sleep_for(kLookAgain);
  }
  SFS_TRY(end());
  return work;
}

}  // namespace streamfs::blockdev
