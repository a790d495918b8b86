#include "ssd/media/image_memory.h"

#include <sys/mman.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/assert.h"
#include "base/result.h"
#include "pmem/region.h"
#include "ssd/geometry.h"
#include "ssd/layout.h"

namespace streamfs::ssd {
namespace {

class ImageMemory final : public pmem::Region {
 public:
  ImageMemory(void* at, uint64_t bytes) : at_(at) { attach(static_cast<std::byte*>(at), bytes); }
  ~ImageMemory() override { munmap(at_, size()); }
  ImageMemory(const ImageMemory&) = delete;
  ImageMemory& operator=(const ImageMemory&) = delete;
  pmem::MetaClass meta_class() const override { return pmem::MetaClass::kPersistent; }

 protected:
  void on_store(uint64_t, uint64_t) override {}
  void write_back_line(uint64_t) override {}
  void drain() override {}
  Result<void> make_durable() override { return {}; }

 private:
  void* const at_;
};

}  // namespace

Result<std::unique_ptr<pmem::Region>> map_memory(int fd, const Geometry& geometry, bool read_only) {
  const ImageOffsets offsets = image_offsets(geometry);
  const uint64_t bytes = offsets.file_bytes - offsets.memory;
  SFS_ASSERT(bytes > 0);
  void* const at =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, read_only ? MAP_PRIVATE : MAP_SHARED, fd,
           static_cast<off_t>(offsets.memory));
  if (at == MAP_FAILED) return Error{errno, "cannot map the persistent memory of the image"};
  return std::unique_ptr<pmem::Region>(new ImageMemory(at, bytes));
}

}  // namespace streamfs::ssd
