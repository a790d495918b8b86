// Idle-time maintenance of block devices that the kernel drives: eMMC cards and UFS. It is tested
// against a simulated card and a made-up folder of /sys only; no test has met a real device.
//
// Thread safety: begin(), end() and prepare_poweroff() are for one thread at a time; the rest any
// thread. Crash: maintenance changes no data. A card finishes the operation that was begun; UFS
// keeps the power setting until the next boot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/result.h"
#include "fuse-fs/blockdev/idle.h"

namespace streamfs::blockdev {

// The methods of Device with the same names call these; begin_idle() and end_idle() call begin()
// and end(). prepare_poweroff() does not flush; the caller has done that. Errors: begin(), end()
// and prepare_poweroff() return those of the commands to the device; ETIMEDOUT if work goes on
// after an interrupt.
class BlockMaintenance {
 public:
  virtual ~BlockMaintenance() = default;
  virtual IdleCapabilities capabilities() const = 0;
  virtual Pressure pressure() = 0;
  virtual Result<IdleWork> begin() = 0;
  virtual Result<void> end() = 0;
  virtual Result<IdleWork> prepare_poweroff(const IdleLimits& limits) = 0;

  // Enclose each request to the device, in any thread. request_begins() interrupts background work
  // and waits until it has stopped. If that fails, it logs a warning, and the request goes on.
  virtual void request_begins() {}
  virtual void request_ended() {}
};

// Calls request_begins() and request_ended() around a scope; does nothing if `of` is null.
class RequestUnderWay {
 public:
  explicit RequestUnderWay(BlockMaintenance* of) : of_(of) {
    if (of_ != nullptr) of_->request_begins();
  }
  ~RequestUnderWay() {
    if (of_ != nullptr) of_->request_ended();
  }
  RequestUnderWay(const RequestUnderWay&) = delete;
  RequestUnderWay& operator=(const RequestUnderWay&) = delete;

 private:
  BlockMaintenance* const of_;
};

// Returns the relative address of the eMMC card whose whole block device has this folder in /sys;
// none for partitions and other devices.
std::optional<uint16_t> card_address(const std::filesystem::path& directory);

// Returns the maintenance of this block device; null for partitions and other kinds of device.
// `directory`: the device's own in /sys. Requires: `fd` stays open longer than the result lives.
std::unique_ptr<BlockMaintenance> maintenance_of(int fd, const std::filesystem::path& directory);

}  // namespace streamfs::blockdev
