#include "fuse-fs/blockdev/file_device.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/identity.h"
#include "fuse-fs/blockdev/lock.h"
#include "fuse-fs/blockdev/write_streams.h"

namespace streamfs::blockdev {
namespace {

struct FreeDeleter {
  void operator()(std::byte* p) const { std::free(p); }
};
using AlignedBuffer = std::shared_ptr<std::byte>;  // shared: a completion must be copyable

AlignedBuffer aligned_buffer(size_t size) {
  AlignedBuffer buffer(static_cast<std::byte*>(std::aligned_alloc(kBlockSize, size)),
                       FreeDeleter{});
  if (buffer == nullptr) throw std::bad_alloc();
  return buffer;
}

// Returns the alignment of buffers for direct I/O.
size_t direct_alignment(int fd) {
#ifdef STATX_DIOALIGN
  struct statx stx{};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
      (stx.stx_mask & STATX_DIOALIGN) != 0 && stx.stx_dio_mem_align != 0)
    return stx.stx_dio_mem_align;
#endif
  (void)fd;
  return kBlockSize;
}

// Opens for direct I/O if the filesystem takes the flag and a first read works, because some
// filesystems accept the flag and then refuse I/O.
Result<int> open_file(const std::string& path, int flags, bool& direct) {
  for (const int extra : {O_DIRECT, 0}) {
    const int fd = ::open(path.c_str(), flags | extra);
    if (fd < 0 && !(extra != 0 && errno == EINVAL)) return Error{errno, "cannot open " + path};
    if (fd < 0) continue;
    if (extra == 0) {
      direct = false;
      return fd;
    }
    const AlignedBuffer probe = aligned_buffer(kBlockSize);
    if (pread(fd, probe.get(), kBlockSize, 0) >= 0) {
      direct = true;
      return fd;
    }
    close(fd);
  }
  return Error{EIO, "cannot read " + path};
}

Result<uint64_t> size_of(int fd, const std::string& path) {
  struct stat st{};
  if (fstat(fd, &st) != 0) return Error{errno, path};
  if (S_ISREG(st.st_mode)) return static_cast<uint64_t>(st.st_size);
  uint64_t bytes = 0;
  if (ioctl(fd, BLKGETSIZE64, &bytes) != 0) return Error{errno, "cannot size " + path};
  return bytes;
}

// Errors: EROFS, the block device is read-only. The kernel opens such a device for writing and then
// refuses each write.
Result<void> check_writable(int fd, const std::string& path) {
  int read_only = 0;
  if (ioctl(fd, BLKROGET, &read_only) != 0 || read_only == 0) return {};
  return Error{EROFS, path +
                          " is a read-only device; mount it with -o ro, or let it be written "
                          "(blockdev --setrw)"};
}

uint64_t discard_blocks(const struct stat& st) {
  const uint64_t bytes = queue_attribute(st.st_rdev, "discard_granularity");
  return std::max<uint64_t>(bytes / kBlockSize, 1);
}

}  // namespace

Result<std::unique_ptr<FileDevice>> FileDevice::open(const std::string& path,
                                                     const OpenOptions& options) {
  struct stat st{};
  if (stat(path.c_str(), &st) != 0) return Error{errno, path};
  const bool is_block = S_ISBLK(st.st_mode);
  if (!is_block && !S_ISREG(st.st_mode))
    return Error{ENOTBLK, path + " is neither a regular file nor a block device"};
  const int exclusive = is_block ? O_EXCL : 0;  // refuses a device that is mounted
  bool direct = false;
  SFS_ASSIGN(const int fd, retry_while_busy(options.wait_seconds, [&] {
               return open_file(
                   path, (options.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | exclusive, direct);
             }));
  std::unique_ptr<FileDevice> device(new FileDevice(fd, is_block, options.read_only));
  SFS_TRY(lock_exclusively(fd, path, options.wait_seconds));
  if (is_block && !options.read_only) SFS_TRY(check_writable(fd, path));
  SFS_ASSIGN(const uint64_t bytes, size_of(fd, path));
  if (bytes < kBlockSize) return Error{EINVAL, path + " is smaller than one block"};
  if (direct) device->memory_alignment_ = direct_alignment(fd);
  device->info_.kind = is_block ? "block" : "file";
  device->info_.path = path;
  device->info_.identity = identity_of(fd, st);
  device->info_.capacity_blocks = bytes / kBlockSize;
  device->info_.erase_unit_blocks = is_block ? discard_blocks(st) : 1;
  device->capacity_blocks_ = bytes / kBlockSize;
  device->bytes_ = bytes;
  device->engine_ = make_io_engine(fd);
  device->info_.transport = device->engine_->name();
  if (is_block) device->use_block_device(st);
  return device;
}

void FileDevice::use_block_device(const struct stat& st) {
  choose_placement(st);
  discards_ = discard_units(sys_directory(st.st_rdev));
  info_.trim_unit_blocks = discards_.unit_bytes / kBlockSize;
  info_.trim_offset_blocks = discards_.offset_bytes / kBlockSize;
  info_.flush_is_free = writes_through(sys_directory(st.st_rdev));
  if (!read_only_) maintenance_ = maintenance_of(fd_, sys_directory(st.st_rdev));
}

void FileDevice::choose_placement(const struct stat& st) {
  WriteStreams streams = write_streams_of(sys_directory(st.st_rdev));
  const bool offered = streams.count > 1;
  if (offered && memory_alignment_ == 1)
    streams = {0, 0, "write streams need direct I/O, which it does not take"};
  if (offered && !engine_->takes_streams())
    streams = {0, 0, "write streams need io_uring, which the kernel refuses"};
  info_.why = streams.why;
  if (streams.count > 1) {
    info_.mechanism = "write streams";
    info_.pstream_count = streams.count;
    if (streams.granularity_bytes > 0)
      info_.erase_unit_blocks = streams.granularity_bytes / kBlockSize;
    const auto count_on_none = [this](uint8_t stream, uint64_t bytes) {
      stream_bytes_.at(stream - 1) -= bytes;
      stream_bytes_.front() += bytes;
    };
    engine_ = std::make_unique<StreamEngine>(std::move(engine_), info_.path, count_on_none);
  } else if (offered) {
    spdlog::warn("{}: {}; everything goes to one stream", info_.path, info_.why);
  }
}

Placement FileDevice::placement(PStreamId stream) const {
  return write_stream_placement(stream, info_.pstream_count);
}

FileDevice::~FileDevice() {
  engine_.reset();
  if (maintenance_ != nullptr) (void)maintenance_->end();
  maintenance_.reset();
  flock(fd_, LOCK_UN);  // the kernel frees a ring, and its reference to the file, a little later
  close(fd_);
}

Result<uint64_t> FileDevice::measure() {
  SFS_ASSIGN(const uint64_t bytes, size_of(fd_, info_.path));
  if (is_block_ || bytes >= bytes_) {
    bytes_ = bytes;
    capacity_blocks_ = bytes / kBlockSize;
  }
  return bytes / kBlockSize;
}

Result<void> FileDevice::check_whole() {
  if (is_block_) return {};
  if (!cut_short_) {
    SFS_ASSIGN(const uint64_t bytes, size_of(fd_, info_.path));
    if (bytes >= bytes_) return {};
    if (!cut_short_.exchange(true)) {
      spdlog::error("{} has {} bytes and had {}: it was truncated while in use", info_.path, bytes,
                    bytes_.load());
    }
  }
  return Error{EIO, info_.path + " was truncated while in use"};
}

Result<void> FileDevice::check(BlockNo first, uint64_t blocks) const {
  return check_range(first, blocks, capacity_blocks_.load(std::memory_order_relaxed));
}

// Counts a request, for a device that works in idle time.
Completion FileDevice::counted(Completion done) {
  if (maintenance_ == nullptr) return done;
  maintenance_->request_begins();
  return [this, done = std::move(done)](Result<void> result) {
    maintenance_->request_ended();
    done(std::move(result));
  };
}

bool FileDevice::needs_copy(const std::byte* data) const {
  return reinterpret_cast<uintptr_t>(data) % memory_alignment_ != 0;
}

void FileDevice::write(BlockNo first, ConstBytes bytes, WriteTag tag, Completion done) {
  if (read_only_) return done(Error{EROFS, "the data device is open for reading"});
  if (auto fits = check(first, bytes.size() / kBlockSize); !fits.ok()) return done(fits.error());
  if (auto whole = check_whole(); !whole.ok()) return done(whole.error());
  const uint8_t stream = write_stream_of(tag.placement);
  written_bytes_ += bytes.size();
  stream_bytes_.at(stream == 0 ? 0 : stream - 1) += bytes.size();
  const uint64_t offset = first.value * kBlockSize;
  done = counted(std::move(done));
  if (!needs_copy(bytes.data())) return engine_->write(offset, bytes, stream, std::move(done));
  const AlignedBuffer copy = aligned_buffer(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  const ConstBytes source(copy.get(), bytes.size());
  engine_->write(offset, source, stream,
                 [copy, done = std::move(done)](Result<void> result) { done(std::move(result)); });
}

void FileDevice::read(BlockNo first, Bytes bytes, Completion done) {
  if (auto fits = check(first, bytes.size() / kBlockSize); !fits.ok()) return done(fits.error());
  read_bytes_ += bytes.size();
  const uint64_t offset = first.value * kBlockSize;
  done = counted(std::move(done));
  if (!needs_copy(bytes.data())) return engine_->read(offset, bytes, std::move(done));
  const AlignedBuffer copy = aligned_buffer(bytes.size());
  const Bytes target(copy.get(), bytes.size());
  engine_->read(offset, target, [copy, bytes, done = std::move(done)](Result<void> result) {
    if (result.ok()) std::memcpy(bytes.data(), copy.get(), bytes.size());
    done(std::move(result));
  });
}

Result<void> FileDevice::flush() {
  ++flushes_;
  if (read_only_) return {};
  const RequestUnderWay request(maintenance_.get());
  SFS_TRY(check_whole());
  SFS_TRY(engine_->fdatasync());
  return check_whole();  // the file may have been cut shorter meanwhile
}

Result<void> FileDevice::trim(BlockNo first, uint64_t count) {
  if (read_only_) return Error{EROFS, "the data device is open for reading"};
  SFS_TRY(check(first, count));
  SFS_TRY(check_whole());
  trimmed_bytes_ += count * kBlockSize;
  return discard(first.value * kBlockSize, count * kBlockSize);
}

Result<void> FileDevice::discard(uint64_t offset, uint64_t size) {
  if (size == 0) return {};
  if (is_block_) {
    const ByteRange whole = whole_units({offset, size}, discards_);
    if (whole.size == 0) return {};
    const RequestUnderWay request(maintenance_.get());
    uint64_t range[2] = {whole.offset, whole.size};
    if (ioctl(fd_, BLKDISCARD, range) == 0 || errno == EOPNOTSUPP) return {};
    return Error{errno, "trim"};
  }
  if (fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(size)) == 0 ||
      errno == EOPNOTSUPP)
    return {};
  return Error{errno, "trim"};
}

IdleCapabilities FileDevice::capabilities() const {
  return maintenance_ == nullptr ? IdleCapabilities{} : maintenance_->capabilities();
}

Pressure FileDevice::pressure() {
  return maintenance_ == nullptr ? Pressure::kUnknown : maintenance_->pressure();
}

Result<IdleWork> FileDevice::begin_idle(const IdleLimits&) {
  return maintenance_ == nullptr ? IdleWork{} : maintenance_->begin();
}

Result<void> FileDevice::end_idle() {
  return maintenance_ == nullptr ? Result<void>() : maintenance_->end();
}

Result<IdleWork> FileDevice::prepare_poweroff(const IdleLimits& limits) {
  SFS_TRY(flush());
  return maintenance_ == nullptr ? IdleWork{} : maintenance_->prepare_poweroff(limits);
}

Result<DeviceStats> FileDevice::stats() {
  DeviceStats stats;
  stats.written_bytes = written_bytes_;
  stats.read_bytes = read_bytes_;
  stats.trimmed_bytes = trimmed_bytes_;
  stats.flushes = flushes_;
  for (size_t s = 0; s < info_.pstream_count; ++s)
    stats.streams.push_back({stream_bytes_.at(s), 0});
  return stats;
}

}  // namespace streamfs::blockdev
