// Idle time of block devices that the kernel drives and that know what to do with it: eMMC cards
// and UFS. No such device has taken part in any test: what is sent is tested byte by byte, and how
// it goes on against a card, and a folder of /sys, that are made up.
//
// Thread safety: begin(), end() and prepare_poweroff() are one thread's at a time; a Request in any
// thread. Crash: none of it changes data. A card goes on with what was begun until it is done, UFS
// keeps the power setting until the next boot.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "fuse-fs/blockdev/idle.h"

namespace streamfs::blockdev {

class BlockMaintenance {
 public:
  virtual ~BlockMaintenance() = default;
  virtual IdleCapabilities capabilities() const = 0;
  virtual Pressure pressure() = 0;
  virtual Result<IdleWork> begin() = 0;
  virtual Result<void> end() = 0;
  virtual Result<IdleWork> prepare_poweroff(const IdleLimits& limits) = 0;

  // Around each request to the device: a request ends what was begun and waits until it has ended.
  virtual void request_begins() {}
  virtual void request_ended() {}
};

// A request of the caller's thread, to a device that may have no maintenance.
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

// What this block device has, if anything. `directory`: its own in /sys; `fd` outlives it.
std::unique_ptr<BlockMaintenance> maintenance_of(int fd, const std::filesystem::path& directory);

}  // namespace streamfs::blockdev
