#include "ssd/media/image_nand.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/types.h"
#include "ssd/ftl/firmware.h"
#include "ssd/ftl/nand.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/latency.h"
#include "ssd/layout.h"
#include "ssd/media/image_media.h"
#include "ssd/media/nand_faults.h"
#include "ssd/media/spare_scan.h"

namespace streamfs::ssd {
namespace {

SpareEntry entry_of(const Spare& spare, uint32_t data_checksum) {
  const int flags = (spare.padding ? kSparePadding : 0) | (spare.in_place ? kSpareInPlace : 0);
  return {spare.sequence, 0, spare.page, static_cast<uint16_t>(flags), 0, 0, data_checksum,
          spare.replaced, 0};
}

Spare spare_of(const SpareEntry& entry) {
  return {.page = entry.lpn,
          .replaced = entry.replaced,
          .sequence = entry.sequence,
          .padding = (entry.vstream & kSparePadding) != 0,
          .in_place = (entry.vstream & kSpareInPlace) != 0};
}

}  // namespace

ImageNand::ImageNand(Image& image, LatencyModel& latency, NandFaults* faults)
    : image_(image),
      latency_(latency),
      faults_(faults),
      blocks_(image.blocks()),
      spare_(image.spare()),
      pages_per_block_(image.geometry().pages_per_block) {}

int ImageNand::program(Ppn at, const Spare& spare, const std::byte* data) {
  static constexpr std::array<std::byte, kPageBytes> kZeroes{};
  const ConstBytes bytes(data != nullptr ? data : kZeroes.data(), kPageBytes);
  if (const int error = put(at, entry_of(spare, crc32c(bytes)), bytes); error != 0) return error;
  latency_.programmed(at, 1, data != nullptr);
  return 0;
}

int ImageNand::copy(Ppn from, Ppn to, const Spare& spare) {
  if (const int error = image_.read_flash(from, copied_); error != 0) return error;
  const bool damaged = state_of(from) == PageState::kDamaged;
  const uint32_t checksum = damaged ? ~crc32c(copied_) : spare_[from].data_checksum;
  latency_.copied_from(from);
  if (const int error = put(to, entry_of(spare, checksum), copied_); error != 0) return error;
  latency_.programmed(to, 1, false);
  return 0;
}

int ImageNand::put(Ppn at, SpareEntry entry, ConstBytes data) {
  if (!powered_) return EIO;
  const BlockIndex block = at / pages_per_block_;
  const uint32_t place = at % pages_per_block_;
  SFS_ASSERT(state_of(at) == PageState::kErased);
  SFS_ASSERT(place == 0 || state_of(at - 1) != PageState::kErased);
  settle(block);
  std::atomic_ref(blocks_[block].programming).store(place + 1, std::memory_order_release);
  const int error = image_.write_flash(at, data);
  if (error == 0) stamp(at, entry);
  if (error == 0 && faults_ != nullptr && faults_->power_fails_programming(at, 1)) {
    tear(at, 1);
    return EIO;
  }
  std::atomic_ref(blocks_[block].programming).store(0, std::memory_order_release);
  return error;
}

// Remembers in the spare entry that an interrupted program left a torn page.
void ImageNand::settle(BlockIndex block) {
  if (blocks_[block].programming == 0) return;
  const Ppn at = block * pages_per_block_ + blocks_[block].programming - 1;
  if (state_of(at) == PageState::kTorn) stamp(at, entry_of(Spare{}, 0));
}

void ImageNand::stamp(Ppn at, SpareEntry entry) {
  entry.erases = blocks_[at / pages_per_block_].erases;
  entry.checksum = checksum_of(entry);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  spare_[at] = entry;
}

int ImageNand::erase(BlockIndex block) {
  if (!powered_) return EIO;
  BlockRecord& record = blocks_[block];
  const Ppn first = block * pages_per_block_;
  publish(record, kBlockErasing, record.erases);
  if (faults_ != nullptr && faults_->power_fails_erasing(block)) {
    tear(first, pages_per_block_);
    return EIO;
  }
  latency_.erased();
  std::ranges::fill(spare_.subspan(first, pages_per_block_), SpareEntry{});
  record.programming = 0;
  publish(record, 0, record.erases + 1);
  return 0;
}

int ImageNand::read(Ppn at, std::byte* data) {
  return powered_ && read_pages(at, data, 1) == 0 ? 0 : EIO;
}

std::optional<Spare> ImageNand::spare(Ppn at) {
  ++spares_read_;
  switch (state_of(at)) {
    case PageState::kErased:
      return std::nullopt;
    case PageState::kWhole:
      return spare_of(spare_[at]);
    case PageState::kTorn:
      return Spare{};
    case PageState::kDamaged:
      break;
  }
  return Spare{.page = kUnknownPage};
}

int ImageNand::read_pages(Ppn first, std::byte* data, uint32_t pages) const {
  if (first >= spare_.size() || pages > spare_.size() - first) return kDataDamaged;
  const Bytes all(data, pages * kPageBytes);
  if (const int error = image_.read_flash(first, all); error != 0) return error;
  for (uint32_t i = 0; i < pages; ++i) {
    const ConstBytes page = all.subspan(i * kPageBytes, kPageBytes);
    if (state_of(first + i) != PageState::kWhole || !fits(spare_[first + i], page))
      return kDataDamaged;
  }
  return 0;
}

ImageNand::PageState ImageNand::state_of(Ppn at) const {
  const BlockRecord& record = blocks_[at / pages_per_block_];
  if ((record.state & kBlockErasing) != 0) return PageState::kTorn;
  const SpareEntry& entry = spare_[at];
  switch (kind_of(entry, record.erases)) {
    case SpareKind::kErased:
      return PageState::kErased;
    case SpareKind::kGarbage:
      return interrupted(at) ? PageState::kTorn : PageState::kDamaged;
    case SpareKind::kProgrammed:
      break;
  }
  const bool torn = entry.lpn == kNoPage || (interrupted(at) && !data_fits(at));
  return torn ? PageState::kTorn : PageState::kWhole;
}

bool ImageNand::interrupted(Ppn at) const {
  return blocks_[at / pages_per_block_].programming == at % pages_per_block_ + 1;
}

bool ImageNand::data_fits(Ppn at) const {
  std::array<std::byte, kPageBytes> data;
  return image_.read_flash(at, data) == 0 && fits(spare_[at], data);
}

void ImageNand::tear(Ppn first, uint32_t pages) {
  std::array<std::byte, kPageBytes> data;
  for (Ppn at = first; at < first + pages; ++at) {
    SFS_ASSERT(image_.read_flash(at, data) == 0);
    faults_->tear(data, spare_[at]);
    SFS_ASSERT(image_.write_flash(at, data) == 0);
  }
  powered_ = false;
}

Wear ImageNand::wear() const {
  const auto [least, most] = std::ranges::minmax(blocks_, {}, &BlockRecord::erases);
  return {least.erases, most.erases};
}

}  // namespace streamfs::ssd
