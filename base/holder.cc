#include "base/holder.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

namespace streamfs {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string mount_namespace(const std::string& process) {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/" + process + "/ns/mnt", unreadable).string();
}

// A line is "1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF".
std::optional<pid_t> holder_in(const std::string& line, const std::string& file) {
  std::istringstream words(line);
  std::string number, kind, mode, access, place;
  pid_t process = 0;
  words >> number >> kind >> mode >> access >> process >> place;
  if (kind != "FLOCK" || place != file || process <= 0) return std::nullopt;
  return process;
}

// A line is "36 35 0:45 / /mnt rw,… - fuse.streamfs …"; the mountpoint of this device, or "".
std::string mountpoint_in(const std::string& path, const std::string& device) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string id, parent, number, root, point;
    words >> id >> parent >> number >> root >> point;
    if (number == device) return point;
  }
  return {};
}

}  // namespace

std::string process_text(pid_t process) {
  const std::string number = std::to_string(process);
  const std::string name = first_line("/proc/" + number + "/comm");
  const std::string apart = mount_namespace(number);
  const bool elsewhere = !apart.empty() && apart != mount_namespace("self");
  return fmt::format("process {} ({}){}", number, name.empty() ? "?" : name,
                     elsewhere ? " in mount namespace " + apart : "");
}

std::string lock_holder(int fd) {
  struct stat found{};
  if (fstat(fd, &found) != 0) return "another process";
  const std::string file =
      fmt::format("{:02x}:{:02x}:{}", major(found.st_dev), minor(found.st_dev), found.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (const auto process = holder_in(line, file)) return process_text(*process);
  }
  return "another process";
}

std::string mount_holder(unsigned minor) {
  const std::string device = fmt::format("0:{}", minor);
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", unreadable)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string point = mountpoint_in(entry.path() / "mountinfo", device);
    if (!point.empty()) return fmt::format("{} at {}", process_text(std::stoi(name)), point);
  }
  return {};
}

}  // namespace streamfs
