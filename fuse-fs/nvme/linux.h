// How Linux takes an NVMe command: the structures of ioctl(2) and io_uring passthrough, and what
// /sys tells of a namespace's queue and partitions, which libnvme (topology.h) does not.
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

// What came back: negative is -errno, positive a status field; `result` is dword 0. EINVAL of the
// kernel is ENOLINK here: it names no field, but says that there is no path to the namespace (while
// its controller is reset, a multipath one has none), or that the request is none it passes.
Result<uint32_t> returned(int status, uint64_t result, std::string_view what);

// Passes a command by a function like ioctl(2): a status field, or -1 and errno. Linux cancels
// what is in flight when a controller is reset (EINTR), and sends no passthrough again itself; so
// this does, a bounded number of times.
using Ioctl = std::function<int(nvme_passthru_cmd64&)>;
Result<uint32_t> by_ioctl(const Ioctl& pass, const Command& command, Bytes data,
                          std::string_view what);

// "/dev/ng0n1" is the character device of the namespace whose block device is nvme0n1. Empty for
// any other name.
std::string block_name_of(const std::filesystem::path& generic);

// What one command may transfer, by the block device's queue: the kernel does not split what is
// passed through. A buffer that begins within a page takes a segment more. One block where /sys
// does not say.
uint64_t max_transfer_bytes(const std::filesystem::path& sys, const std::string& block_name);

// Partitions of the block device: the character device reaches across them.
std::vector<std::string> partitions_of(const std::filesystem::path& sys,
                                       const std::string& block_name);

}  // namespace streamfs::nvme
