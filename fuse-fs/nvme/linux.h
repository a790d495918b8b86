// NVMe commands through Linux: the structures of ioctl(2) and io_uring passthrough, and the queue
// limits and partitions of a namespace in /sys.
// Thread safety: pure functions, but for reading /sys.
#pragma once

#include <linux/nvme_ioctl.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"

// Since Linux 5.19; the headers of Debian 12 have it.
static_assert(sizeof(nvme_uring_cmd) == 72);

namespace streamfs::nvme {

nvme_passthru_cmd64 ioctl_command(const Command& command, Bytes data);
nvme_uring_cmd ring_command(const Command& command, Bytes data);

// Converts a passthrough result. `status` is -errno of the kernel if it is negative, and else the
// status field of the completion; `result` is dword 0. EINVAL of the kernel becomes ENOLINK: the
// kernel returns it if a multipath namespace has no path while its controller is reset, but also if
// it does not pass such a command.
Result<uint32_t> returned(int status, uint64_t result, std::string_view what);

// Sends a command by `pass`, which returns as ioctl(2) does: a status field, or -1 with errno.
// Linux cancels commands when a controller is reset (EINTR) and does not retry passthrough, so this
// sends a cancelled command again, ten times in all. Errors: EINTR after that; those of returned().
using Ioctl = std::function<int(nvme_passthru_cmd64&)>;
Result<uint32_t> by_ioctl(const Ioctl& pass, const Command& command, Bytes data,
                          std::string_view what);

// Returns "nvme0n1", the name of the block device, for the character device "/dev/ng0n1" of the
// same namespace. Empty for any other name.
std::string block_name_of(const std::filesystem::path& generic);

// Returns the largest transfer of one command by the queue limits of the block device: the kernel
// does not split passthrough commands. Leaves a segment free: a buffer may begin within a page.
// Returns one block if /sys does not tell.
uint64_t max_transfer_bytes(const std::filesystem::path& sys, const std::string& block_name);

// Returns the block device's partitions, sorted. The character device ignores partitions.
std::vector<std::string> partitions_of(const std::filesystem::path& sys,
                                       const std::string& block_name);

}  // namespace streamfs::nvme
