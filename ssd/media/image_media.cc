#include "ssd/media/image_media.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/types.h"
#include "ssd/ftl/page_map.h"
#include "ssd/ftl/router.h"
#include "ssd/ftl/write_stamp.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/layout.h"
#include "ssd/media/nand_faults.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd {
namespace {

constexpr uint64_t kCopyBytes = 1 << 20;  // a whole number of map units

}  // namespace

void ImageMedia::FreeDeleter::operator()(std::byte* p) const {
  std::free(p);
}

ImageMedia::ImageMedia(Image& image, LatencyModel& latency, NandFaults* faults)
    : image_(image),
      latency_(latency),
      faults_(faults),
      blocks_(image.blocks()),
      spare_(image.spare()),
      trims_(image.trims()),
      pages_per_block_(image.geometry().in_map_units().pages_per_block),
      wordline_(image.geometry().in_map_units().wordline_pages),
      unit_(image.geometry().map_unit_pages),
      plp_(image.geometry().plp),
      programmed_(image.geometry().blocks),
      committed_(image.geometry().blocks),
      unclean_(image.geometry().blocks) {
  copy_buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kCopyBytes)));
  SFS_ASSERT(copy_buffer_ != nullptr);
}

void ImageMedia::restore(const SpareScan& scan) {
  for (size_t i = 0; i < programmed_.size(); ++i)
    programmed_[i] = committed_[i] = scan.blocks[i].written;
  for (const BlockIndex block : scan.unclean) unclean_[block] = true;
}

// Returns whether every wordline that these pages complete can be programmed.
bool ImageMedia::can_program(Ppn at, uint32_t pages) {
  const BlockIndex block = at / pages_per_block_;
  const uint32_t first = at % pages_per_block_;
  SFS_ASSERT(first == programmed_[block]);
  for (uint32_t w = first / wordline_; faults_ != nullptr && w < (first + pages) / wordline_; ++w)
    if (faults_->program_fails(block, blocks_[block].erases, w)) return false;
  return true;
}

int ImageMedia::store(Ppn at, const std::byte* data, uint32_t pages) {
  if (!powered_) return EIO;
  if (!can_program(at, pages)) return kProgramFailed;
  if (data == nullptr) {
    latency_.programmed(at * unit_, pages * unit_, false);
    return 0;
  }
  const size_t unit_bytes = unit_ * kPageBytes;
  const ConstBytes bytes(data, pages * unit_bytes);
  if (const int error = image_.write_flash(at, bytes); error != 0) return error;
  stored_at_ = at;
  stored_checksums_.resize(pages);
  for (uint32_t i = 0; i < pages; ++i)
    stored_checksums_[i] = crc32c(bytes.subspan(i * unit_bytes, unit_bytes));
  latency_.programmed(at * unit_, pages * unit_, true);
  return 0;
}

int ImageMedia::move(std::span<const Ppn> from, Ppn to) {
  if (!powered_) return EIO;
  if (!can_program(to, static_cast<uint32_t>(from.size()))) return kProgramFailed;
  const size_t step = kCopyBytes / (unit_ * kPageBytes);
  for (size_t i = 0; i < from.size(); i += step) {
    const auto some = from.subspan(i, std::min(step, from.size() - i));
    if (const int error = move_some(some, to + static_cast<Ppn>(i))) return error;
  }
  latency_.programmed(to * unit_, static_cast<uint32_t>(from.size()) * unit_, false);
  return 0;
}

// Copies pages with their checksums, which are not checked: damaged data stays damaged, and the
// host will see it.
int ImageMedia::move_some(std::span<const Ppn> from, Ppn to) {
  std::byte* buffer = copy_buffer_.get();
  const uint64_t bytes = uint64_t{unit_} * kPageBytes;
  for (size_t i = 0, end = 0; i < from.size(); i = end) {
    for (end = i + 1; end < from.size() && from[end] == from[end - 1] + 1;) ++end;
    const auto pages = static_cast<uint32_t>(end - i) * unit_;
    const Bytes run(buffer + i * bytes, pages * kPageBytes);
    if (const int error = image_.read_flash(from[i], run)) return error;
    for (uint32_t page = 0; page < pages; ++page) latency_.copied_from(from[i] * unit_ + page);
  }
  return image_.write_flash(to, {buffer, from.size() * bytes});
}

int ImageMedia::read(Ppn first, std::byte* data, uint32_t pages) const {
  for (uint32_t done = 0, some = 0; done < pages; done += some) {
    const Ppn at = first + done;
    const uint32_t within = at % unit_, left = pages - done;
    const bool whole = within == 0 && left >= unit_;
    some = whole ? left - left % unit_ : std::min(left, unit_ - within);
    const Bytes part(data + done * kPageBytes, some * kPageBytes);
    if (const int error = whole ? read_units(at / unit_, part) : read_part(at, part)) return error;
  }
  return 0;
}

int ImageMedia::read_units(Ppn first, Bytes data) const {
  if (const int error = image_.read_flash(first, data)) return error;
  const size_t unit_bytes = unit_ * kPageBytes;
  for (size_t i = 0; i * unit_bytes < data.size(); ++i)
    if (!fits(spare_[first + i], data.subspan(i * unit_bytes, unit_bytes))) return kDataDamaged;
  return 0;
}

// Reads pages of one map unit. All of the unit is read, because its checksum covers all of it.
int ImageMedia::read_part(Ppn first, Bytes data) const {
  std::vector<std::byte> unit(unit_ * kPageBytes);
  if (const int error = read_units(first / unit_, unit)) return error;
  std::memcpy(data.data(), unit.data() + first % unit_ * kPageBytes, data.size());
  return 0;
}

void ImageMedia::stamp(Ppn at, SpareEntry entry) {
  if (!powered_) return;
  const BlockIndex block = at / pages_per_block_;
  SFS_ASSERT(at % pages_per_block_ == programmed_[block]);
  ++programmed_[block];
  entry.erases = blocks_[block].erases;
  entry.checksum = checksum_of(entry) ^ (plp_ ? 0 : kBufferedMark);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  spare_[at] = entry;
  if (plp_ && faults_ != nullptr && faults_->power_fails_programming(at, 1)) tear(at, 1);
}

void ImageMedia::stamp_host(Ppn at, Lpn page, WriteStamp stamp_of_write) {
  if (!powered_) return;
  stamp(at, {stamp_of_write.sequence, stamp_of_write.written_at, page, stamp_of_write.vstream,
             stamp_of_write.pstream, 0, stored_checksums_[at - stored_at_], 0, 0});
}

void ImageMedia::stamp_copy(Ppn at, Ppn from, uint64_t sequence) {
  SpareEntry entry = spare_[from];
  const uint32_t difference = entry.checksum ^ checksum_of(entry);
  entry.sequence = sequence;
  stamp(at, entry);
  if (difference != 0 && difference != kBufferedMark && powered_) spare_[at].checksum ^= 1;
}

void ImageMedia::stamp_pad(Ppn at, uint64_t sequence) {
  stamp(at, {sequence, 0, kNoPage, 0, 0, 0, 0, 0, 0});
}

void ImageMedia::opened(BlockIndex block, FrontierId frontier) {
  if (!powered_) return;
  SFS_ASSERT(programmed_[block] == 0);
  blocks_[block].frontier = frontier;
}

// Without power-loss protection, the buffered wordlines are programmed here.
void ImageMedia::committed(BlockIndex block, uint32_t pages) {
  for (uint32_t first = committed_[block]; !plp_ && first < pages; first += wordline_) {
    if (!powered_) return;
    const Ppn at = block * pages_per_block_ + first;
    for (uint32_t i = 0; i < wordline_; ++i) spare_[at + i].checksum ^= kBufferedMark;
    if (faults_ != nullptr && faults_->power_fails_programming(at, wordline_)) tear(at, wordline_);
  }
  committed_[block] = pages;
}

bool ImageMedia::erased(BlockIndex block) {
  if (!powered_) return true;
  const uint32_t state = blocks_[block].state, erases = blocks_[block].erases;
  const Ppn first = block * pages_per_block_;
  publish(blocks_[block], state | kBlockErasing, erases);
  if (faults_ != nullptr && faults_->power_fails_erasing(block)) {
    tear(first, pages_per_block_);
    return true;
  }
  latency_.erased();
  if (faults_ != nullptr && faults_->erase_fails(block, erases)) {
    publish(blocks_[block], kBlockRetired, erases);
    return false;
  }
  if (unclean_[block] || (state & kBlockDoubtful) != 0)
    std::ranges::fill(spare_.subspan(first, pages_per_block_), SpareEntry{});
  publish(blocks_[block], 0, erases + 1);
  unclean_[block] = false;
  programmed_[block] = committed_[block] = 0;
  return true;
}

void ImageMedia::failed(BlockIndex block) {
  if (powered_) publish(blocks_[block], blocks_[block].state | kBlockFailed, blocks_[block].erases);
}

void ImageMedia::retired(BlockIndex block) {
  if (powered_) publish(blocks_[block], kBlockRetired, blocks_[block].erases);
}

void ImageMedia::tear(Ppn first, uint32_t pages) {
  std::vector<std::byte> data(unit_ * kPageBytes);
  for (Ppn at = first; at < first + pages; ++at) {
    SFS_ASSERT(image_.read_flash(at, data) == 0);
    faults_->tear(data, spare_[at]);
    SFS_ASSERT(image_.write_flash(at, data) == 0);
  }
  powered_ = false;
}

void ImageMedia::trimmed(Lpn page, uint64_t sequence) {
  if (powered_) std::atomic_ref(trims_[page]).store(sequence, std::memory_order_release);
}

}  // namespace streamfs::ssd
