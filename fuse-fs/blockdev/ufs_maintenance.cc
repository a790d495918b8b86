#include "fuse-fs/blockdev/ufs_maintenance.h"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "fuse-fs/blockdev/idle.h"

namespace streamfs::blockdev {
namespace {

constexpr const char* kPower = "power/control";
constexpr const char* kStatus = "attributes/bkops_status";
constexpr const char* kState = "hid/state";
constexpr const char* kAnalysis = "hid/analysis_trigger";
constexpr const char* kDefragmentation = "hid/defrag_trigger";

bool is_there(const std::filesystem::path& file) {
  std::error_code failed;
  return std::filesystem::exists(file, failed);
}

}  // namespace

std::optional<std::filesystem::path> UfsMaintenance::controller_above(std::filesystem::path disk) {
  for (; disk.has_relative_path(); disk = disk.parent_path())
    if (is_there(disk / kStatus) && is_there(disk / kPower)) return disk;
  return std::nullopt;
}

std::string UfsMaintenance::read(const char* name) const {
  std::ifstream input(at_ / name);
  std::string word;
  input >> word;
  return word;
}

Result<void> UfsMaintenance::write(const char* name, const char* value) const {
  std::ofstream output(at_ / name);
  output << value << std::flush;
  if (!output) return Error{EIO, "UFS: " + (at_ / name).string() + " does not take " + value};
  return {};
}

IdleCapabilities UfsMaintenance::capabilities() const {
  return {IdleMeans::kByItself, is_there(at_ / kState)
                                    ? "UFS runtime power management and defragmentation (HID)"
                                    : "UFS runtime power management"};
}

// bBackgroundOpStatus, JESD220: 0 none, 1 not critical, 2 they cost speed, 3 critical.
Pressure UfsMaintenance::pressure() {
  const std::string word = read(kStatus);
  int base = 10;
  if (word.starts_with("0x")) base = 16;
  char* end = nullptr;
  const uint64_t status = std::strtoull(word.c_str(), &end, base);
  if (word.empty() || *end != '\0' || status > 3) return Pressure::kUnknown;
  return static_cast<Pressure>(status);
}

Result<void> UfsMaintenance::defragment() {
  if (!is_there(at_ / kState)) return {};
  const std::string state = read(kState);
  const char* trigger = nullptr;
  if (state == "idle") trigger = kAnalysis;
  if (state == "defrag_required") trigger = kDefragmentation;
  if (trigger == nullptr) return {};
  SFS_TRY(write(trigger, "enable"));
  triggered_ = trigger;
  return {};
}

Result<IdleWork> UfsMaintenance::begin() {
  if (!power_before_.empty() || !triggered_.empty()) return IdleWork{};
  SFS_TRY(defragment());
  const std::string before = read(kPower);
  if (before != "auto" && !before.empty()) {
    SFS_TRY(write(kPower, "auto"));
    power_before_ = before;
  }
  return IdleWork{};
}

Result<void> UfsMaintenance::end() {
  const std::string power = std::exchange(power_before_, {});
  const std::string trigger = std::exchange(triggered_, {});
  const Result<void> woken = power.empty() ? Result<void>() : write(kPower, power.c_str());
  if (!trigger.empty()) SFS_TRY(write(trigger.c_str(), "disable"));
  return woken;
}

}  // namespace streamfs::blockdev
