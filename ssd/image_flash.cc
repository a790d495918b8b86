// Image: reads and writes of the flash.
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/image.h"

namespace streamfs::ssd {

int Image::write_flash(Ppn at, ConstBytes data) {
  uint64_t offset = offsets_.data + uint64_t{at} * geometry_.map_unit_pages * kPageBytes;
  while (!data.empty()) {
    const ssize_t done = pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    data = data.subspan(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
  return 0;
}

int Image::read_flash_pages(uint64_t page, Bytes data) const {
  uint64_t offset = offsets_.data + page * kPageBytes;
  while (!data.empty()) {
    const ssize_t done = pread(fd_, data.data(), data.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    data = data.subspan(static_cast<size_t>(done));
    offset += static_cast<uint64_t>(done);
  }
  return 0;
}

}  // namespace streamfs::ssd
