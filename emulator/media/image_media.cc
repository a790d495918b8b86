#include "emulator/media/image_media.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/assert.h"
#include "base/checksum.h"
#include "emulator/ftl/page_map.h"
#include "emulator/ftl/router.h"
#include "emulator/geometry.h"
#include "emulator/image.h"
#include "emulator/latency.h"
#include "emulator/layout.h"

namespace streamfs::emulator {
namespace {

constexpr uint64_t kCopyBytes = 1 << 20;  // a whole number of map units

static_assert(std::endian::native == std::endian::little);

// The 8-byte store that publishes: write pointer in the low half, erase count in the high half.
void publish(BlockRecord& record, uint32_t write_pointer, uint32_t erases) {
  auto& both = reinterpret_cast<uint64_t&>(record);
  std::atomic_ref(both).store(uint64_t{erases} << 32 | write_pointer, std::memory_order_release);
}

int write_fully(int fd, const std::byte* data, size_t size, uint64_t offset) {
  while (size > 0) {
    const ssize_t done = pwrite(fd, data, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    data += done;
    size -= static_cast<size_t>(done);
    offset += static_cast<uint64_t>(done);
  }
  return 0;
}

int read_fully(int fd, std::byte* data, size_t size, uint64_t offset) {
  while (size > 0) {
    const ssize_t done = pread(fd, data, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : EIO;
    data += done;
    size -= static_cast<size_t>(done);
    offset += static_cast<uint64_t>(done);
  }
  return 0;
}

}  // namespace

void ImageMedia::FreeDeleter::operator()(std::byte* p) const {
  std::free(p);
}

ImageMedia::ImageMedia(Image& image, LatencyModel& latency)
    : image_(image),
      latency_(latency),
      blocks_(image.blocks()),
      spare_(image.spare()),
      trims_(image.trims()),
      pages_per_block_(image.geometry().in_map_units().pages_per_block),
      unit_(image.geometry().map_unit_pages),
      programmed_(image.geometry().blocks) {
  copy_buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kCopyBytes)));
  SFS_ASSERT(copy_buffer_ != nullptr);
  for (size_t i = 0; i < programmed_.size(); ++i) programmed_[i] = blocks_[i].write_pointer;
}

int ImageMedia::store(Ppn at, const std::byte* data, uint32_t pages) {
  SFS_ASSERT(at % pages_per_block_ == programmed_[at / pages_per_block_]);
  const int error = write_fully(image_.fd(), data, size_t{pages} * unit_ * kPageBytes,
                                image_.data_offset() + uint64_t{at} * unit_ * kPageBytes);
  if (error == 0) latency_.programmed(at * unit_, pages * unit_, true);
  return error;
}

int ImageMedia::move(std::span<const Ppn> from, Ppn to) {
  const size_t step = kCopyBytes / (unit_ * kPageBytes);
  for (size_t i = 0; i < from.size(); i += step) {
    const auto some = from.subspan(i, std::min(step, from.size() - i));
    if (const int error = move_some(some, to + static_cast<Ppn>(i))) return error;
  }
  latency_.programmed(to * unit_, static_cast<uint32_t>(from.size()) * unit_, false);
  return 0;
}

int ImageMedia::move_some(std::span<const Ppn> from, Ppn to) {
  std::byte* buffer = copy_buffer_.get();
  const uint64_t bytes = uint64_t{unit_} * kPageBytes;
  for (size_t i = 0, end = 0; i < from.size(); i = end) {
    for (end = i + 1; end < from.size() && from[end] == from[end - 1] + 1;) ++end;
    const auto pages = static_cast<uint32_t>(end - i) * unit_;
    if (const int error = read(from[i] * unit_, buffer + i * bytes, pages)) return error;
    for (uint32_t page = 0; page < pages; ++page) latency_.copied_from(from[i] * unit_ + page);
  }
  return write_fully(image_.fd(), buffer, from.size() * bytes, image_.data_offset() + to * bytes);
}

int ImageMedia::read(Ppn first, std::byte* data, uint32_t pages) const {
  return read_fully(image_.fd(), data, size_t{pages} * kPageBytes,
                    image_.data_offset() + uint64_t{first} * kPageBytes);
}

void ImageMedia::stamp(Ppn at, SpareEntry entry) {
  const BlockIndex block = at / pages_per_block_;
  SFS_ASSERT(at % pages_per_block_ == programmed_[block]);
  ++programmed_[block];
  entry.erases = blocks_[block].erases;
  entry.checksum =
      crc32c(std::as_bytes(std::span(&entry, 1)).first(offsetof(SpareEntry, checksum)));
  spare_[at] = entry;
}

void ImageMedia::stamp_host(Ppn at, Lpn page, WriteStamp stamp_of_write) {
  stamp(at, {stamp_of_write.sequence, stamp_of_write.written_at, page, stamp_of_write.vstream,
             stamp_of_write.pstream, 0, 0});
}

void ImageMedia::stamp_copy(Ppn at, Ppn from, uint64_t sequence) {
  SpareEntry entry = spare_[from];
  entry.sequence = sequence;
  stamp(at, entry);
}

void ImageMedia::stamp_pad(Ppn at, uint64_t sequence) {
  stamp(at, {sequence, 0, kNoPage, 0, 0, 0, 0});
}

void ImageMedia::opened(BlockIndex block, FrontierId frontier) {
  SFS_ASSERT(programmed_[block] == 0);
  blocks_[block].frontier = frontier;
}

void ImageMedia::committed(BlockIndex block, uint32_t pages) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  publish(blocks_[block], pages, blocks_[block].erases);
}

void ImageMedia::erased(BlockIndex block) {
  publish(blocks_[block], 0, blocks_[block].erases + 1);
  programmed_[block] = 0;
  latency_.erased(block);
}

void ImageMedia::trimmed(Lpn page, uint64_t sequence) {
  std::atomic_ref(trims_[page]).store(sequence, std::memory_order_release);
}

}  // namespace streamfs::emulator
