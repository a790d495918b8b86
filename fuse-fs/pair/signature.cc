#include "fuse-fs/pair/signature.h"

#include <blkid/blkid.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/meta/layout.h"
#include "pmem/region.h"

namespace streamfs::pair {
namespace {

constexpr uint64_t kLookBytes = 1024 * 1024;  // at either end: where signatures live

using Found = std::optional<std::string>;

// The ends of a device in a sparse file of its size, for libblkid to look at: an emulated device
// has no node of its own, and a node's other half may be anything.
class Mirror {
 public:
  explicit Mirror(uint64_t size) : fd_(::memfd_create("signature", MFD_CLOEXEC)) {
    ready_ = fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(size)) == 0;
  }
  ~Mirror() {
    if (fd_ >= 0) ::close(fd_);
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  bool put(uint64_t offset, ConstBytes bytes) {
    ready_ = ready_ && ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
                           static_cast<ssize_t>(bytes.size());
    return ready_;
  }
  Result<Found> probe() const;

 private:
  int fd_;
  bool ready_ = false;
};

Result<Found> Mirror::probe() const {
  const std::unique_ptr<struct blkid_struct_probe, decltype(&blkid_free_probe)> probe(
      blkid_new_probe(), &blkid_free_probe);
  if (!ready_ || probe == nullptr || blkid_probe_set_device(probe.get(), fd_, 0, 0) != 0) {
    return Error{EIO, "looking for what the device holds"};
  }
  blkid_probe_enable_superblocks(probe.get(), 1);
  blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_TYPE);
  blkid_probe_enable_partitions(probe.get(), 1);
  if (blkid_do_safeprobe(probe.get()) == 1) return Found{};
  const char* type = nullptr;
  if (blkid_probe_lookup_value(probe.get(), "TYPE", &type, nullptr) == 0) {
    return Found{"a filesystem or volume of type " + std::string(type)};
  }
  if (blkid_probe_lookup_value(probe.get(), "PTTYPE", &type, nullptr) == 0) {
    return Found{"a partition table of type " + std::string(type)};
  }
  return Found{"several signatures at once"};
}

Found own_magic(ConstBytes start) {
  uint64_t magic = 0;
  std::memcpy(&magic, start.data(), sizeof magic);
  if (magic == wire::kDataMagic) return "a streamfs data device";
  if (magic == wire::kSuperMagic) return "a streamfs metadata device";
  if (magic == wire::kImageMagic) return "an emulated SSD (name it emu:PATH to use it)";
  return std::nullopt;
}

// A file that holds anything is somebody's; what a bare device held before is often just that.
Found something(ConstBytes start) {
  const bool empty =
      std::ranges::all_of(start, [](std::byte byte) { return byte == std::byte{0}; });
  return empty ? Found{} : Found{"data"};
}

}  // namespace

Result<Found> signature_of(blockdev::Device& device) {
  const uint64_t size = device.info().capacity_blocks * kBlockSize;
  const uint64_t look = std::min(kLookBytes, size);
  Mirror mirror(size);
  const Bytes bytes = blockdev::scratch(look);
  Found holds_data;
  for (const uint64_t offset : {uint64_t{0}, size - look}) {
    blockdev::IoBatch batch(device);
    batch.read(BlockNo{offset / kBlockSize}, bytes);
    SFS_TRY(batch.wait());
    if (offset == 0) {
      if (auto own = own_magic(bytes)) return own;
      holds_data = something(bytes);
    }
    if (!mirror.put(offset, bytes)) return Error{EIO, "looking for what the device holds"};
  }
  SFS_ASSIGN(Found found, mirror.probe());
  if (found || device.info().kind != "file") return found;
  return holds_data;
}

Result<Found> signature_of(const pmem::Region& region) {
  const uint64_t look = std::min(kLookBytes, region.size());
  if (auto own = own_magic({region.at(0), look})) return own;
  Mirror mirror(region.size());
  mirror.put(0, {region.at(0), look});
  mirror.put(region.size() - look, {region.at(region.size() - look), look});
  SFS_ASSIGN(Found found, mirror.probe());
  return found ? found : something({region.at(0), look});
}

}  // namespace streamfs::pair
