// power_cut_disk IMAGE MOUNTPOINT [--sector BYTES] [--fail N] [--lie] [--seed N]
//
// MOUNTPOINT/disk is a disk with the content of IMAGE; MOUNTPOINT/control takes "cut SEED". Links
// libfuse and nothing of streamfs. Stays in the foreground until it is unmounted.
#include <fcntl.h>
#include <fuse.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "tests/powercut/disk.h"

namespace {

using powercut::Disk;

constexpr std::string_view kDisk = "/disk", kControl = "/control";

Disk& disk() {
  return *static_cast<Disk*>(fuse_get_context()->private_data);
}

void* init(fuse_conn_info* /*connection*/, fuse_config* config) {
  config->use_ino = 1;
  config->attr_timeout = config->entry_timeout = 3600;
  return fuse_get_context()->private_data;
}

int getattr(const char* path, struct stat* out, fuse_file_info* /*file*/) {
  *out = {};
  out->st_nlink = 1;
  out->st_mode = S_IFREG | 0600;
  out->st_ino = 2;
  if (path == kDisk) {
    out->st_size = static_cast<off_t>(disk().size());
    out->st_blocks = out->st_size / 512;
  } else if (path == kControl) {
    out->st_ino = 3;
  } else if (std::string_view(path) == "/") {
    out->st_mode = S_IFDIR | 0700;
    out->st_nlink = 2;
    out->st_ino = 1;
  } else {
    return -ENOENT;
  }
  return 0;
}

int open(const char* path, fuse_file_info* file) {
  if (path == kControl) file->direct_io = 1;
  return 0;
}

int truncate(const char* path, off_t size, fuse_file_info* /*file*/) {
  if (path == kControl || size == static_cast<off_t>(disk().size())) return 0;
  return -EPERM;
}

int read(const char* path, char* out, size_t size, off_t offset, fuse_file_info* /*file*/) {
  if (path == kDisk) return disk().read({out, size}, static_cast<uint64_t>(offset));
  if (offset > 0) return 0;
  const std::string text = "flushes " + std::to_string(disk().flushes()) + " cached " +
                           std::to_string(disk().cached_writes()) + "\n";
  const size_t length = std::min(size, text.size());
  std::copy_n(text.data(), length, out);
  return static_cast<int>(length);
}

int write(const char* path, const char* in, size_t size, off_t offset, fuse_file_info* /*file*/) {
  if (path == kDisk) return disk().write({in, size}, static_cast<uint64_t>(offset));
  const std::string command(in, size);
  if (!command.starts_with("cut ")) return -EINVAL;
  const int failed = disk().cut(std::strtoull(&command[4], nullptr, 10));
  return failed != 0 ? failed : static_cast<int>(size);
}

int fsync(const char* path, int /*data_only*/, fuse_file_info* /*file*/) {
  return path == kDisk ? disk().flush() : 0;
}

int fallocate(const char* path, int mode, off_t offset, off_t length, fuse_file_info* /*file*/) {
  if (path != kDisk) return -EINVAL;
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) == 0) return 0;
  return disk().discard(static_cast<uint64_t>(offset), static_cast<uint64_t>(length));
}

fuse_operations operations() {
  fuse_operations all{};
  all.init = init;
  all.getattr = getattr;
  all.open = open;
  all.truncate = truncate;
  all.read = read;
  all.write = write;
  all.fsync = fsync;
  all.fallocate = fallocate;
  return all;
}

int usage() {
  std::fputs(
      "usage: power_cut_disk IMAGE MOUNTPOINT [--sector BYTES] [--fail N] [--lie] [--seed N]\n",
      stderr);
  return 2;
}

bool take(powercut::Faults& faults, std::string_view option, const char* value) {
  if (value == nullptr) return false;
  const uint64_t number = std::strtoull(value, nullptr, 10);
  if (option == "--sector") faults.sector_bytes = number;
  if (option == "--fail") faults.fail_one_in = number;
  if (option == "--seed") faults.seed = number;
  return number != 0 && (option == "--sector" || option == "--fail" || option == "--seed");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return usage();
  powercut::Faults faults;
  for (int i = 3; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--lie") {
      faults.lie = true;
    } else if (!take(faults, argv[i], argv[i + 1])) {
      return usage();
    } else {
      ++i;
    }
  }
  const int image = ::open(argv[1], O_RDWR | O_CLOEXEC);
  struct stat found{};
  if (image < 0 || fstat(image, &found) != 0) {
    std::perror(argv[1]);
    return 1;
  }
  Disk disk(image, static_cast<uint64_t>(found.st_size), faults);
  char foreground[] = "-f", one_thread[] = "-s", option[] = "-osubtype=power_cut_disk";
  char* words[] = {argv[0], foreground, one_thread, option, argv[2], nullptr};
  const fuse_operations all = operations();
  return fuse_main(5, words, &all, &disk);
}
