#include "fuse-fs/frontend/kernel_tuning.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

namespace streamfs::frontend {
namespace {

constexpr unsigned kReadAheadKib = 2048;  // two requests of the largest size
constexpr unsigned kDirtyPercent = 50;

void write_setting(const std::string& path, unsigned value) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const std::string text = fmt::format("{}\n", value);
  if (fd < 0 || write(fd, text.data(), text.size()) < 0) {
    spdlog::debug("{} stays as it is: errno {}", path, errno);
  }
  if (fd >= 0) close(fd);
}

}  // namespace

bool become_io_flusher() {
  return prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0;
}

void raise_limits(dev_t device, bool flusher, const std::string& sysfs) {
  const std::string folder = fmt::format("{}/{}:{}", sysfs, major(device), minor(device));
  write_setting(folder + "/read_ahead_kb", kReadAheadKib);
  write_setting(folder + "/max_ratio", kDirtyPercent);
  if (flusher) write_setting(folder + "/strict_limit", 0);
}

}  // namespace streamfs::frontend
