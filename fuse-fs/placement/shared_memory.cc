#include "fuse-fs/placement/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"

namespace streamfs::placement {

Result<SharedMapping> SharedMapping::make(const char* name, uint64_t bytes) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return Error{errno, "shared memory"};
  void* data = MAP_FAILED;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
      ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (data == MAP_FAILED) {
    const int code = errno;
    ::close(fd);
    return Error{code, "shared memory"};
  }
  return SharedMapping(fd, static_cast<std::byte*>(data), bytes);
}

SharedMapping::~SharedMapping() {
  if (fd_ < 0) return;
  ::munmap(data_, size_);
  ::close(fd_);
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), data_(other.data_), size_(other.size_) {}

}  // namespace streamfs::placement
