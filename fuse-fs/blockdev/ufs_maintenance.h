// Idle-time maintenance of a UFS device through its folder in /sys. Idle time allows runtime power
// management, in which the kernel lets the device collect garbage. If the device supports
// host-initiated defragmentation (HID, Linux 6.17), idle time also triggers an analysis, or the
// defragmentation that an analysis asked for.
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
  // Returns the folder of the UFS controller above a disk's folder; nothing if there is none.
  static std::optional<std::filesystem::path> controller_above(std::filesystem::path disk);

  explicit UfsMaintenance(std::filesystem::path controller) : at_(std::move(controller)) {}
  ~UfsMaintenance() override { (void)end(); }
  IdleCapabilities capabilities() const override;
  Pressure pressure() override;
  Result<IdleWork> begin() override;
  Result<void> end() override;
  // Does nothing: the kernel itself tells the device that the power goes.
  Result<IdleWork> prepare_poweroff(const IdleLimits&) override { return IdleWork{}; }

 private:
  std::string read(const char* name) const;
  Result<void> write(const char* name, const char* value) const;
  Result<void> defragment();

  const std::filesystem::path at_;
  std::string power_before_;  // setting that end() restores; empty: none
  std::string triggered_;     // trigger that end() disables; empty: none
};

}  // namespace streamfs::blockdev
