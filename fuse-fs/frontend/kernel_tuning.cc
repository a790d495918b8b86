#include "fuse-fs/frontend/kernel_tuning.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

namespace streamfs::frontend {
namespace {

constexpr unsigned kReadAheadKib = 2048;  // two requests of the largest size
constexpr unsigned kDirtyPercent = 50;

void write_setting(const std::string& path, uint64_t value) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const std::string text = fmt::format("{}\n", value);
  if (fd < 0 || write(fd, text.data(), text.size()) < 0) {
    spdlog::debug("{} stays as it is: errno {}", path, errno);
  }
  if (fd >= 0) close(fd);
}

std::string folder_of(dev_t device, const std::string& sysfs) {
  return fmt::format("{}/{}:{}", sysfs, major(device), minor(device));
}

constexpr const char* kConnections = "/sys/fs/fuse/connections";
constexpr long kFusectlMagic = 0x65735543;  // FUSE_CTL_SUPER_MAGIC, which no header exports

// Opens the directory that has a directory for each connection: the usual one, or else a detached
// mount of fusectl. Returns a file descriptor.
Result<int> open_connections() {
  struct statfs kind{};
  int fd = -1;
  if (statfs(kConnections, &kind) == 0 && kind.f_type == kFusectlMagic) {
    fd = open(kConnections, O_PATH | O_DIRECTORY | O_CLOEXEC);
  } else if (const int made = fsopen("fusectl", FSOPEN_CLOEXEC); made >= 0) {
    if (fsconfig(made, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0)
      fd = fsmount(made, FSMOUNT_CLOEXEC, 0);
    close(made);
  }
  if (fd < 0) return Error{errno, "fusectl, at which the kernel ends mounts"};
  return fd;
}

}  // namespace

bool become_io_flusher() {
  return prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0;
}

void raise_limits(dev_t device, bool flusher, const std::string& sysfs) {
  const std::string folder = folder_of(device, sysfs);
  write_setting(folder + "/read_ahead_kb", kReadAheadKib);
  write_setting(folder + "/max_ratio", kDirtyPercent);
  if (flusher) write_setting(folder + "/strict_limit", 0);
}

// The kernel turns max_bytes into a share of what all filesystems may hold dirty. Writing max_ratio
// therefore undoes it.
void limit_dirty(dev_t device, std::optional<uint64_t> bytes, bool flusher,
                 const std::string& sysfs) {
  const std::string folder = folder_of(device, sysfs);
  if (bytes) {
    write_setting(folder + "/max_bytes", *bytes);
    write_setting(folder + "/strict_limit", 1);
  } else {
    write_setting(folder + "/max_ratio", kDirtyPercent);
    if (flusher) write_setting(folder + "/strict_limit", 0);
  }
}

unsigned connection_of(const std::string& mountpoint) {
  struct statx root{};
  const int done = statx(AT_FDCWD, mountpoint.c_str(), AT_STATX_DONT_SYNC, 0, &root);
  return done == 0 && root.stx_dev_major == 0 ? root.stx_dev_minor : 0;
}

bool is_connected(unsigned connection) {
  const auto folder = open_connections();
  if (!folder) return false;
  const bool there = faccessat(*folder, std::to_string(connection).c_str(), F_OK, 0) == 0;
  close(*folder);
  return there;
}

Result<int> open_abort(unsigned connection) {
  SFS_ASSIGN(const int folder, open_connections());
  const std::string path = fmt::format("{}/abort", connection);
  const int fd = openat(folder, path.c_str(), O_WRONLY | O_CLOEXEC);
  const int code = errno;
  close(folder);
  if (fd < 0) return Error{code, "fusectl's " + path};
  return fd;
}

Result<void> end_connection(unsigned connection) {
  SFS_ASSIGN(const int abort, open_abort(connection));
  const bool ended = write(abort, "1", 1) == 1;
  const int code = errno;
  close(abort);
  if (!ended) return Error{code, fmt::format("fusectl's {}/abort", connection)};
  return {};
}

}  // namespace streamfs::frontend
