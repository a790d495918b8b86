#include "tests/unit/libstream/fake_mount.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "base/wire/hint_ioctl.h"

FakeMount& fake_mount() {
  static FakeMount mount;
  return mount;
}

namespace {

bool mounted(const std::string& path) {
  const std::string& root = fake_mount().root;
  return !root.empty() && path.compare(0, root.size(), root) == 0;
}

int fail(int code) {
  errno = code;
  return -1;
}

std::string path_of(int fd) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error).string();
}

// The questions that are of no file.
int answer_about(streamfs_hint* hint) {
  if (fake_mount().older) return fail(EINVAL);
  if (hint->command == STREAMFS_HINT_VSTREAM) {
    hint->lifetime_bytes = 12345;
    return std::strcmp(hint->name, "invoices") == 0 || hint->number == 7 ? 0 : fail(ENOENT);
  }
  hint->pstream = 8;
  hint->number = 1;
  std::strcpy(hint->name, "emulated");
  return 0;
}

// Handles a hint as the filesystem does, as far as the library can see it.
int answer(const std::string& path, streamfs_hint* hint) {
  FakeMount& mount = fake_mount();
  mount.asked.push_back(*hint);
  if (mount.errno_of_every_answer != 0) return fail(mount.errno_of_every_answer);
  if (hint->version != STREAMFS_HINT_VERSION) return fail(EINVAL);
  streamfs_hint& file = mount.files[path];
  if (!mount.takes_labels) hint->command = STREAMFS_HINT_QUERY;
  const auto name_it = [&file](const char* name, uint16_t number) {
    std::memset(file.name, 0, sizeof(file.name));
    std::memcpy(file.name, name, strnlen(name, sizeof(file.name)));
    file.number = number;
  };
  static const char* const lives[] = {"", "", "rwh-short", "rwh-medium", "rwh-long", "rwh-extreme"};
  switch (hint->command) {
    case STREAMFS_HINT_NUMBER:
      name_it("", hint->number);
      break;
    case STREAMFS_HINT_NAME:
      name_it(hint->name, 100);
      break;
    case STREAMFS_HINT_RW_HINT:
      name_it(lives[hint->rw_hint], 101);
      break;
    case STREAMFS_HINT_CLEAR:
      file = streamfs_hint{};
      break;
    case STREAMFS_HINT_VSTREAM:
    case STREAMFS_HINT_DEVICE:
      return answer_about(hint);
    default:
      break;
  }
  hint->number = file.number;
  std::memcpy(hint->name, file.name, sizeof(hint->name));
  return 0;
}

}  // namespace

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == STREAMFS_IOC_HINT) {
    const std::string path = path_of(fd);
    if (mounted(path)) return answer(path, static_cast<streamfs_hint*>(argument));
    ++fake_mount().questions_elsewhere;
  }
  return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
}

extern "C" int fstat(int fd, struct stat* status) noexcept {
  const int result = fstatat(fd, "", status, AT_EMPTY_PATH);
  if (result == 0 && fake_mount().device != 0 && mounted(path_of(fd))) {
    status->st_dev = fake_mount().device;
  }
  return result;
}

extern "C" int setxattr(const char* path, const char* name, const void* value, size_t size,
                        int flags) noexcept {
  if (!mounted(path))
    return static_cast<int>(syscall(SYS_setxattr, path, name, value, size, flags));
  if (std::strcmp(name, "user.streamfs.vstream") != 0) return fail(EOPNOTSUPP);
  if (!fake_mount().takes_labels) return 0;
  fake_mount().attributes[path] = std::string(static_cast<const char*>(value), size);
  return 0;
}

extern "C" ssize_t getxattr(const char* path, const char* name, void* value, size_t size) noexcept {
  if (!mounted(path)) return syscall(SYS_getxattr, path, name, value, size);
  const auto found = fake_mount().attributes.find(path);
  if (found == fake_mount().attributes.end()) return fail(ENODATA);
  if (found->second.size() > size) return fail(ERANGE);
  std::memcpy(value, found->second.data(), found->second.size());
  return static_cast<ssize_t>(found->second.size());
}

extern "C" int removexattr(const char* path, const char* name) noexcept {
  if (!mounted(path)) return static_cast<int>(syscall(SYS_removexattr, path, name));
  return fake_mount().attributes.erase(path) == 1 ? 0 : fail(ENODATA);
}

TemporaryFolder::TemporaryFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "libstream.XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) abort();
  path_ = path;
  FakeMount& mount = fake_mount();
  mount.root = path_;
  static unsigned next_device = 0xfff00000;
  mount.device = next_device++;
  mount.errno_of_every_answer = 0;
  mount.takes_labels = true;
  mount.files.clear();
  mount.attributes.clear();
  mount.asked.clear();
  mount.questions_elsewhere = 0;
}

TemporaryFolder::~TemporaryFolder() {
  fake_mount().root.clear();
  std::filesystem::remove_all(path_);
}

std::string TemporaryFolder::file(const std::string& name) const {
  std::ofstream(path_ + "/" + name).flush();
  return path_ + "/" + name;
}

std::string TemporaryFolder::folder(const std::string& name) const {
  std::filesystem::create_directory(path_ + "/" + name);
  return path_ + "/" + name;
}
