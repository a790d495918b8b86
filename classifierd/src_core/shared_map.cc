#include "classifierd/src_core/shared_map.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace streamfs::classifier {

SharedMap::SharedMap(int fd, Access access, size_t size_min) {
  struct stat status = {};
  if (fstat(fd, &status) != 0) {
    throw std::runtime_error(std::string("shared memory: ") + std::strerror(errno));
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ < size_min) {
    throw std::runtime_error("shared memory of " + std::to_string(size_) + " bytes, at least " +
                             std::to_string(size_min) + " expected");
  }
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const at = mmap(nullptr, size_, protection, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    throw std::runtime_error(std::string("shared memory: mmap: ") + std::strerror(errno));
  }
  data_ = static_cast<std::byte*>(at);
  const int seals = fcntl(fd, F_GET_SEALS);
  sealed_ = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

}  // namespace streamfs::classifier
