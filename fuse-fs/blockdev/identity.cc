#include "fuse-fs/blockdev/identity.h"

#include <fmt/format.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace streamfs::blockdev {
namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const size_t end = line.find_last_not_of(" \t");
  const size_t begin = line.find_first_not_of(" \t");
  return end == std::string::npos ? "" : line.substr(begin, end - begin + 1);
}

// Reads a queue attribute; for a partition, that of its disk.
std::string queue_line(const std::filesystem::path& directory, const char* name) {
  const bool part = !first_line(directory / "partition").empty();
  return first_line(directory / (part ? "../queue" : "queue") / name);
}

std::string hardware_name(const std::filesystem::path& disk) {
  for (const char* file : {"wwid", "device/wwid", "device/serial", "serial", "loop/backing_file"})
    if (std::string name = first_line(disk / file); !name.empty()) return name;
  return {};
}

std::string block_identity(dev_t device) {
  std::filesystem::path directory = sys_directory(device);
  const std::string partition = first_line(directory / "partition");
  if (!partition.empty()) directory = directory.parent_path();
  std::string name = hardware_name(directory);
  if (name.empty()) name = fmt::format("{}:{}", major(device), minor(device));
  return partition.empty() ? "block:" + name : fmt::format("block:{}:part{}", name, partition);
}

}  // namespace

std::filesystem::path sys_directory(dev_t device) {
  std::error_code error;
  const std::string link = fmt::format("/sys/dev/block/{}:{}", major(device), minor(device));
  const auto path = std::filesystem::canonical(link, error);
  return error ? std::filesystem::path(link) : path;
}

std::string identity_of(int fd, const struct stat& st) {
  if (S_ISBLK(st.st_mode)) return block_identity(st.st_rdev);
  struct statfs fs{};
  uint64_t fsid = 0;
  if (fstatfs(fd, &fs) == 0) std::memcpy(&fsid, &fs.f_fsid, sizeof(fsid));
  return fmt::format("file:{:016x}:{}", fsid, st.st_ino);
}

uint64_t queue_attribute(dev_t device, const char* name) {
  return std::strtoull(queue_line(sys_directory(device), name).c_str(), nullptr, 10);
}

bool writes_through(const std::filesystem::path& directory) {
  return queue_line(directory, "write_cache") == "write through";
}

}  // namespace streamfs::blockdev
