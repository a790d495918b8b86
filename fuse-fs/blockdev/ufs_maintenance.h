// Idle time of a UFS device, by its folder in /sys: runtime power management, in which the kernel
// lets the device collect garbage, is allowed in idle time; where the device can be told to
// defragment (HID, Linux 6.17), it is when it says that it wants to.
// Thread safety, crash: block_maintenance.h.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "fuse-fs/blockdev/block_maintenance.h"

namespace streamfs::blockdev {

class UfsMaintenance final : public BlockMaintenance {
 public:
  // The controller above a disk's folder, if that is UFS; none otherwise.
  static std::optional<std::filesystem::path> controller_above(std::filesystem::path disk);

  explicit UfsMaintenance(std::filesystem::path controller) : at_(std::move(controller)) {}
  ~UfsMaintenance() override { (void)end(); }
  IdleCapabilities capabilities() const override;
  Pressure pressure() override;
  Result<IdleWork> begin() override;
  Result<void> end() override;
  // The kernel tells the device by itself that the power goes.
  Result<IdleWork> prepare_poweroff(const IdleLimits&) override { return IdleWork{}; }

 private:
  std::string read(const char* name) const;
  Result<void> write(const char* name, const char* value) const;
  Result<void> defragment();

  const std::filesystem::path at_;
  std::string power_before_;  // what to put back; empty: nothing
  std::string triggered_;     // which trigger was enabled; empty: none
};

}  // namespace streamfs::blockdev
