#include "fuse-fs/nvme/linux.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/status.h"

namespace streamfs::nvme {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr int kTriesMost = 10;

template <typename Kernel>
Kernel filled(const Command& command, Bytes data) {
  Kernel kernel{};
  kernel.opcode = command.opcode;
  kernel.nsid = command.nsid;
  kernel.addr = reinterpret_cast<uint64_t>(data.data());
  kernel.data_len = static_cast<uint32_t>(data.size());
  kernel.cdw10 = command.cdw[0];
  kernel.cdw11 = command.cdw[1];
  kernel.cdw12 = command.cdw[2];
  kernel.cdw13 = command.cdw[3];
  kernel.cdw14 = command.cdw[4];
  kernel.cdw15 = command.cdw[5];
  return kernel;
}

uint64_t number_in(const std::filesystem::path& file) {
  std::ifstream input(file);
  uint64_t value = 0;
  input >> value;
  return value;
}

// False where there is none.
bool skip_number(std::string_view& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0;
}

}  // namespace

nvme_passthru_cmd64 ioctl_command(const Command& command, Bytes data) {
  return filled<nvme_passthru_cmd64>(command, data);
}

nvme_uring_cmd ring_command(const Command& command, Bytes data) {
  return filled<nvme_uring_cmd>(command, data);
}

Result<uint32_t> returned(int status, uint64_t result, std::string_view what) {
  if (status == -EINVAL)
    return Error{ENOLINK,
                 fmt::format("{}: the kernel does not pass it (no path to the namespace?)", what)};
  if (status < 0) return Error{-status, std::string(what)};
  return outcome({static_cast<uint16_t>(status), static_cast<uint32_t>(result)}, what);
}

Result<uint32_t> by_ioctl(const Ioctl& pass, const Command& command, Bytes data,
                          std::string_view what) {
  nvme_passthru_cmd64 kernel{};
  int status = 0;
  for (int tried = 0; tried < kTriesMost; ++tried) {
    kernel = ioctl_command(command, data);
    status = pass(kernel);
    if (status < 0) status = -errno;
    if (status != -EINTR) break;
  }
  return returned(status, kernel.result, what);
}

std::string block_name_of(const std::filesystem::path& generic) {
  const std::string name = generic.filename().string();
  constexpr std::string_view kPrefix = "ng";
  if (!name.starts_with(kPrefix)) return {};
  std::string_view rest = std::string_view(name).substr(kPrefix.size());
  const std::string_view numbers = rest;
  if (!skip_number(rest) || !rest.starts_with('n')) return {};
  rest.remove_prefix(1);
  return skip_number(rest) && rest.empty() ? "nvme" + std::string(numbers) : std::string();
}

uint64_t max_transfer_bytes(const std::filesystem::path& sys, const std::string& block_name) {
  const auto queue = sys / "block" / block_name / "queue";
  const uint64_t bytes = number_in(queue / "max_hw_sectors_kb") * 1024;
  const uint64_t segments = number_in(queue / "max_segments");
  const uint64_t pages = segments > 1 ? (segments - 1) * kPageBytes : 0;
  return std::max(std::min(bytes, pages), kBlockSize);
}

std::vector<std::string> partitions_of(const std::filesystem::path& sys,
                                       const std::string& block_name) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(sys / "block" / block_name, error))
    if (std::filesystem::exists(entry.path() / "partition", error))
      names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace streamfs::nvme
