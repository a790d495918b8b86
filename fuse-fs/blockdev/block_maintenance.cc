#include "fuse-fs/blockdev/block_maintenance.h"

#include <linux/major.h>
#include <linux/mmc/ioctl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "fuse-fs/blockdev/emmc_maintenance.h"
#include "fuse-fs/blockdev/ufs_maintenance.h"

namespace streamfs::blockdev {
namespace {

constexpr uint16_t kUsualCard = 1;  // the number that Linux gives to the only card of a host

std::string first_word(const std::filesystem::path& file) {
  std::ifstream input(file);
  std::string word;
  input >> word;
  return word;
}

}  // namespace

std::optional<uint16_t> card_address(const std::filesystem::path& directory) {
  std::error_code failed;
  if (std::filesystem::exists(directory / "partition", failed)) return std::nullopt;
  if (first_word(directory / "device/type") != "MMC") return std::nullopt;
  std::ifstream input(directory / "device/rca");
  uint32_t card = 0;
  return input >> std::setbase(0) >> card && card <= UINT16_MAX ? static_cast<uint16_t>(card)
                                                                : kUsualCard;
}

std::unique_ptr<BlockMaintenance> maintenance_of(int fd, const std::filesystem::path& directory) {
  std::error_code failed;
  if (std::filesystem::exists(directory / "partition", failed)) return nullptr;
  if (const auto address = card_address(directory))
    return EmmcMaintenance::open(
        [fd](mmc_ioc_cmd& command) { return ioctl(fd, MMC_IOC_CMD, &command) == 0 ? 0 : errno; },
        *address);
  const auto real = std::filesystem::canonical(directory, failed);
  if (failed) return nullptr;
  if (const auto controller = UfsMaintenance::controller_above(real))
    return std::make_unique<UfsMaintenance>(*controller);
  return nullptr;
}

}  // namespace streamfs::blockdev
