#include "ssd/image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/holder.h"
#include "base/output_file.h"
#include "base/result.h"
#include "base/wire/magic.h"
#include "pmem/region.h"
#include "ssd/ftl/hybrid.h"
#include "ssd/geometry.h"
#include "ssd/layout.h"
#include "ssd/media/image_memory.h"
#include "ssd/media/nand_faults.h"

namespace streamfs::ssd {
namespace {

static_assert(std::endian::native == std::endian::little);  // publish()

constexpr auto kLockRetry = std::chrono::milliseconds(20);

Error system_error(const std::string& what) {
  return {errno, what};
}

uint32_t header_checksum(const ImageHeader& header) {
  return crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(ImageHeader, checksum)));
}

ImageHeader make_header(const Geometry& geometry) {
  const ImageOffsets offsets = image_offsets(geometry);
  ImageHeader header{};
  header.magic = wire::kImageMagic;
  header.version = kImageVersion;
  header.header_bytes = sizeof(ImageHeader);
  header.user_pages = geometry.user_pages;
  header.pages_per_block = geometry.pages_per_block;
  header.blocks = geometry.blocks;
  header.streams = geometry.streams;
  header.low_water = geometry.low_water;
  header.gc_mode = static_cast<uint8_t>(geometry.gc_mode);
  header.victim = static_cast<uint32_t>(geometry.victim);
  header.plp = geometry.plp ? 1 : 0;
  header.cell = static_cast<uint8_t>(geometry.nand.cell);
  header.map_unit_pages = static_cast<uint8_t>(geometry.map_unit_pages);
  header.bad_blocks = geometry.bad_blocks;
  header.channels = geometry.nand.channels;
  header.chips = geometry.nand.chips;
  header.dies = geometry.nand.dies;
  header.planes = geometry.nand.planes;
  header.wordlines = geometry.nand.wordlines;
  header.program_failures_per_billion = geometry.failures.program_per_billion;
  header.erase_failures_per_billion = geometry.failures.erase_per_billion;
  header.failure_seed = geometry.failures.seed;
  header.ftl = static_cast<uint32_t>(geometry.ftl);
  header.block_offset = offsets.block;
  header.trim_offset = offsets.trim;
  header.spare_offset = offsets.spare;
  header.data_offset = offsets.data;
  header.file_bytes = offsets.file_bytes;
  SFS_ASSERT(getrandom(header.uuid, sizeof(header.uuid), 0) == sizeof(header.uuid));
  header.checksum = header_checksum(header);
  return header;
}

Geometry geometry_of(const ImageHeader& header) {
  Geometry geometry;
  geometry.user_pages = header.user_pages;
  geometry.pages_per_block = header.pages_per_block;
  geometry.blocks = header.blocks;
  geometry.streams = header.streams;
  geometry.low_water = header.low_water;
  geometry.gc_mode = static_cast<GcMode>(header.gc_mode);
  geometry.victim = static_cast<VictimKind>(header.victim);
  geometry.plp = header.plp != 0;
  geometry.nand = {header.channels, header.chips,     header.dies,
                   header.planes,   header.wordlines, static_cast<Cell>(header.cell)};
  geometry.wordline_pages = geometry.nand.wordline_pages();
  geometry.map_unit_pages = header.map_unit_pages;
  geometry.bad_blocks = header.bad_blocks;
  geometry.ftl = static_cast<FtlKind>(header.ftl);
  geometry.failures = {header.program_failures_per_billion, header.erase_failures_per_billion,
                       header.failure_seed};
  return geometry;
}

std::string uuid_text(const uint8_t (&uuid)[16]) {
  std::string text;
  for (size_t i = 0; i < sizeof(uuid); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

// Makes the persistent memory of a hybrid FTL, which gets its space now, too.
Result<void> format_memory(int fd, const Geometry& geometry, const std::string& path) {
  const ImageOffsets offsets = image_offsets(geometry);
  if (offsets.memory == offsets.file_bytes) return {};
  const auto bytes = static_cast<off_t>(offsets.file_bytes - offsets.memory);
  if (const int error = posix_fallocate(fd, static_cast<off_t>(offsets.memory), bytes); error != 0)
    return Error{error, "cannot allocate the persistent memory of " + path};
  SFS_ASSIGN(const std::unique_ptr<pmem::Region> memory, map_memory(fd, geometry, false));
  return HybridFtl::format(geometry, *memory);
}

// Fills a new image. The tables get their space now, so that a full host disk cannot kill the
// process with SIGBUS later.
Result<void> fill_image(int fd, const Geometry& geometry, const std::string& path) {
  const ImageHeader header = make_header(geometry);
  const ImageOffsets offsets = image_offsets(geometry);
  if (ftruncate(fd, static_cast<off_t>(offsets.file_bytes)) != 0)
    return system_error("cannot size " + path);
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(offsets.data)); error != 0)
    return Error{error, "cannot allocate the tables of " + path};
  if (pwrite(fd, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header)))
    return system_error("cannot write the header of " + path);
  const BlockRecord bad{kBlockRetired, 0, 0, 0};
  for (const BlockIndex block : factory_bad_blocks(geometry))
    if (pwrite(fd, &bad, sizeof(bad), static_cast<off_t>(offsets.block + block * sizeof(bad))) !=
        static_cast<ssize_t>(sizeof(bad)))
      return system_error("cannot write the block table of " + path);
  const uint64_t log = offsets.data + geometry.physical_pages() * kPageBytes;
  const uint64_t log_bytes = 2 * context_half_pages(geometry) * kPageBytes;
  if (log_bytes > 0) {
    if (const int error =
            posix_fallocate(fd, static_cast<off_t>(log), static_cast<off_t>(log_bytes));
        error != 0)
      return Error{error, "cannot allocate the log of contexts of " + path};
  }
  SFS_TRY(format_memory(fd, geometry, path));
  if (fsync(fd) != 0) return system_error("cannot sync " + path);
  return {};
}

Result<void> check_replaceable(const std::string& path, bool replace) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? Result<void>() : system_error("cannot open " + path);
  struct stat st{};
  Result<void> result;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    result = Error{EINVAL, path + " exists and is not a regular file"};
  } else if (!replace) {
    result = Error{EEXIST, path + " exists (--force replaces it)"};
  } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    result = Error{EBUSY, path + " is in use"};
  }
  close(fd);
  return result;
}

Result<void> lock_exclusively(int fd, const std::string& path, double wait_seconds) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_seconds);
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return system_error("cannot lock " + path);
    if (std::chrono::steady_clock::now() >= deadline)
      return Error{EBUSY, path + " is in use by " + lock_holder(fd)};
    std::this_thread::sleep_for(kLockRetry);
  }
  return {};
}

}  // namespace

Result<void> Image::create(const std::string& path, const Geometry& geometry, bool replace) {
  SFS_TRY(check_geometry(geometry));
  SFS_TRY(check_replaceable(path, replace));
  SFS_ASSIGN(OutputFile file, OutputFile::create(path));
  SFS_TRY(fill_image(file.fd(), geometry, path));
  return file.commit(replace ? OutputFile::Existing::kReplace : OutputFile::Existing::kRefuse);
}

Result<std::unique_ptr<Image>> Image::open(const std::string& path, Access access,
                                           double wait_seconds) {
  std::unique_ptr<Image> image(new Image);
  const bool writes = access == Access::kHold || access == Access::kControl;
  image->fd_ = ::open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (image->fd_ < 0) return system_error("cannot open " + path);
  SFS_TRY(image->read_header(path));
  if (access == Access::kHold || access == Access::kHoldRead)
    SFS_TRY(lock_exclusively(image->fd_, path, wait_seconds));
  SFS_TRY(image->map(access));
  return image;
}

Result<void> Image::read_header(const std::string& path) {
  ImageHeader header{};
  struct stat st{};
  if (fstat(fd_, &st) != 0) return system_error("cannot stat " + path);
  if (!S_ISREG(st.st_mode)) return Error{EINVAL, path + " is not a regular file"};
  const ssize_t got = pread(fd_, &header, sizeof(header), 0);
  if (got < 0) return system_error("cannot read " + path);
  if (got != static_cast<ssize_t>(sizeof(header)) || header.magic != wire::kImageMagic)
    return Error{EINVAL, path + " is not an emulated SSD"};
  if (header.version != kImageVersion)
    return Error{
        EINVAL,
        fmt::format(
            "{}: an image of another version: image version {}, this program knows version {}",
            path, header.version, kImageVersion)};
  if (header.checksum != header_checksum(header))
    return Error{EINVAL, path + ": damaged header (checksum)"};
  if (header.ftl >= kAllFtls.size())
    return Error{EINVAL, fmt::format("{}: an image of an FTL that this program does not know ({})",
                                     path, header.ftl)};
  if (header.victim >= kVictimKinds)
    return Error{EINVAL, fmt::format("{}: victims by a policy that this program does not know ({})",
                                     path, header.victim)};
  geometry_ = geometry_of(header);
  if (auto sane = check_geometry(geometry_); !sane.ok())
    return Error{EINVAL, path + ": damaged header: " + sane.error().context};
  offsets_ = image_offsets(geometry_);
  if (offsets_.data != header.data_offset || offsets_.file_bytes != header.file_bytes ||
      header.gc_mode > static_cast<uint8_t>(GcMode::kShared))
    return Error{EINVAL, path + ": damaged header (layout)"};
  if (static_cast<uint64_t>(st.st_size) < offsets_.file_bytes)
    return Error{EINVAL, fmt::format("{}: truncated: {} bytes of {}", path, st.st_size,
                                     offsets_.file_bytes)};
  uuid_ = uuid_text(header.uuid);
  return {};
}

Result<void> Image::map(Access access) {
  const bool writes = access == Access::kHold || access == Access::kControl;
  const bool tables = access == Access::kHold || access == Access::kHoldRead;
  map_bytes_ = tables ? offsets_.data : offsets_.block;
  void* at =
      mmap(nullptr, map_bytes_, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) return system_error("cannot map the image");
  map_ = static_cast<std::byte*>(at);
  return {};
}

Image::~Image() {
  if (map_ != nullptr) munmap(map_, map_bytes_);
  if (fd_ >= 0) close(fd_);
}

namespace {

// Copies word by word and in order, because the caller compares versions read before and after.
void copy_words(const SharedState& from, SharedState& to) {
  auto* source = reinterpret_cast<uint64_t*>(const_cast<SharedState*>(&from));
  auto* target = reinterpret_cast<uint64_t*>(&to);
  for (size_t i = 0; i < sizeof(SharedState) / sizeof(uint64_t); ++i)
    target[i] = std::atomic_ref(source[i]).load(std::memory_order_acquire);
}

}  // namespace

// The state is the low half of the 8 bytes, and the erase count the high half.
void publish(BlockRecord& record, uint32_t state, uint32_t erases) {
  auto& both = reinterpret_cast<uint64_t&>(record);
  std::atomic_ref(both).store(uint64_t{erases} << 32 | state, std::memory_order_release);
}

SharedState snapshot(const SharedState& shared) {
  constexpr int kAttempts = 1000;
  SharedState copy;
  auto& version = const_cast<uint64_t&>(shared.version);
  auto& baseline_version = const_cast<uint64_t&>(shared.baseline_version);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const uint64_t before = std::atomic_ref(version).load(std::memory_order_acquire);
    const uint64_t baseline = std::atomic_ref(baseline_version).load(std::memory_order_acquire);
    copy_words(shared, copy);
    if (before % 2 == 0 && baseline % 2 == 0 &&
        before == std::atomic_ref(version).load(std::memory_order_relaxed) &&
        baseline == std::atomic_ref(baseline_version).load(std::memory_order_relaxed))
      return copy;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return copy;  // the writer died inside an update: off by one request at most
}

void store_baseline(SharedState& shared) {
  const SharedState now = snapshot(shared);
  std::atomic_ref version(shared.baseline_version);
  const uint64_t even = version.load() & ~uint64_t{1};
  version.store(even + 1);
  shared.baseline = now.now;
  std::atomic_ref(shared.live.peak_live_pages).store(now.live.live_pages);
  version.store(even + 2);
}

SharedUpdate::SharedUpdate(SharedState& shared) : shared_(shared) {
  std::atomic_ref version(shared_.version);
  version.exchange(version.load(std::memory_order_relaxed) | 1, std::memory_order_acq_rel);
}

SharedUpdate::~SharedUpdate() {
  std::atomic_ref version(shared_.version);
  version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

}  // namespace streamfs::ssd
