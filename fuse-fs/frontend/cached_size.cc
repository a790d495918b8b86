#include "fuse-fs/frontend/cached_size.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/result.h"

namespace streamfs::frontend {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// fuse_encode_fh() in fs/fuse/inode.c: the inode's number, high half first, and its generation.
constexpr int kInodeAndGeneration = 0x81;  // FILEID_INO64_GEN
using RawHandle = std::array<uint32_t, 3>;

int open_handle(int mount, const RawHandle& raw, int flags) {
  alignas(file_handle) std::array<std::byte, sizeof(file_handle) + sizeof raw> memory{};
  auto* const handle = reinterpret_cast<file_handle*>(memory.data());
  handle->handle_bytes = sizeof raw;
  handle->handle_type = kInodeAndGeneration;
  std::memcpy(memory.data() + offsetof(file_handle, f_handle), raw.data(), sizeof raw);
  return open_by_handle_at(mount, handle, flags);
}

std::string link_to(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

}  // namespace

// Through a mount of our own that nobody sees, so that an unmount never finds the mount in use. The
// descriptor is O_PATH: closing any other one takes the error that the program's close(2) tells.
Result<int> CachedSize::open_inode(Inode inode) const {
  const Fd clone(open_tree(AT_FDCWD, mountpoint_.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (clone.get() < 0) return Error{errno, "a mount of our own of " + mountpoint_};
  const Fd ours(openat(clone.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat root{};
  if (ours.get() < 0 || fstat(ours.get(), &root) != 0) return Error{errno, mountpoint_};
  if (root.st_dev != device_) return Error{ENODEV, mountpoint_ + " is hidden by another mount"};
  const RawHandle raw = {static_cast<uint32_t>(inode.number >> 32),
                         static_cast<uint32_t>(inode.number), inode.generation};
  const int fd = open_handle(ours.get(), raw, O_PATH | O_CLOEXEC);
  if (fd < 0) return Error{errno, fmt::format("inode {}", inode.number)};
  return fd;
}

// vfs_removexattr() takes the lock that write(2) holds, and no file has this attribute.
Result<void> CachedSize::wait_for_writers(Inode inode) {
  SFS_ASSIGN(const int opened, open_inode(inode));
  const Fd fd(opened);
  removexattr(link_to(fd.get()).c_str(), "trusted.streamfs.no_such_attribute");
  return {};
}

Result<void> CachedSize::correct(Inode inode) {
  SFS_ASSIGN(const int opened, open_inode(inode));
  const Fd fd(opened);
  inode_.store(inode.number, std::memory_order_relaxed);
  thread_.store(gettid(), std::memory_order_relaxed);
  const int done = truncate(link_to(fd.get()).c_str(), static_cast<off_t>(inode.size));
  const int code = errno;
  thread_.store(0, std::memory_order_relaxed);
  if (done != 0) return Error{code, fmt::format("the size of inode {}", inode.number)};
  return {};
}

Result<void> CachedSize::take_error(Inode inode) {
  SFS_ASSIGN(const int opened, open_inode(inode));
  const Fd fd(opened);
  const int told = open(link_to(fd.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NOATIME);
  if (told < 0) return Error{errno, fmt::format("inode {}", inode.number)};
  close(told);  // fuse_flush() in fs/fuse/file.c: filemap_check_errors()
  return {};
}

}  // namespace streamfs::frontend
