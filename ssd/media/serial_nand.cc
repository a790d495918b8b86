#include "ssd/media/serial_nand.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/assert.h"
#include "base/random.h"
#include "ssd/ftl/nand.h"
#include "ssd/geometry.h"

namespace streamfs::ssd {

SerialNand::SerialNand(const Geometry& geometry, uint32_t page_bytes, const SerialTiming& timing)
    : pages_per_block_(geometry.pages_per_block),
      page_bytes_(page_bytes),
      timing_(timing),
      pages_(geometry.physical_pages()),
      data_(geometry.physical_pages() * page_bytes),
      written_(geometry.blocks) {}

int SerialNand::program(Ppn at, const Spare& spare, const std::byte* data) {
  busy_ns_ += timing_.program_ns;
  return put(at, spare, data);
}

// Copies a page. If its spare area was just read, the page is in the register already.
int SerialNand::copy(Ppn from, Ppn to, const Spare& spare) {
  SFS_ASSERT(pages_[from].programmed);
  ++operations_.reads;
  busy_ns_ += timing_.read_ns - (in_register_ == from ? timing_.spare_read_ns : 0);
  busy_ns_ += timing_.program_ns;
  in_register_ = from;
  return put(to, spare, page_bytes_ == 0 ? nullptr : data_at(from));
}

int SerialNand::put(Ppn at, const Spare& spare, const std::byte* data) {
  if (!powered_) return EIO;
  SFS_ASSERT(at % pages_per_block_ == written_[at / pages_per_block_]);
  ++operations_.programs;
  const Fate fate = operate();
  if (fate != Fate::kNotBegun) {
    ++written_[at / pages_per_block_];
    pages_[at] = {fate == Fate::kTorn ? Spare{} : spare, true};
    if (page_bytes_ == 0) return powered_ ? 0 : EIO;
    if (data == nullptr) {
      std::fill_n(data_at(at), page_bytes_, std::byte{0});
    } else {
      std::copy_n(data, page_bytes_, data_at(at));
    }
  }
  return powered_ ? 0 : EIO;
}

int SerialNand::erase(BlockIndex block) {
  if (!powered_) return EIO;
  ++operations_.erases;
  busy_ns_ += timing_.erase_ns;
  in_register_ = kNoPage;
  const Fate fate = operate();
  if (fate != Fate::kNotBegun) {
    const bool torn = fate == Fate::kTorn;
    std::fill_n(pages_.begin() + static_cast<ptrdiff_t>(uint64_t{block} * pages_per_block_),
                pages_per_block_, Page{Spare{}, torn});
    written_[block] = torn ? pages_per_block_ : 0;
  }
  return powered_ ? 0 : EIO;
}

int SerialNand::read(Ppn at, std::byte* data) {
  if (!powered_ || !pages_[at].programmed || pages_[at].spare.page == kNoPage) return EIO;
  ++operations_.reads;
  busy_ns_ += timing_.read_ns;
  in_register_ = at;
  std::copy_n(data_at(at), page_bytes_, data);
  return 0;
}

std::optional<Spare> SerialNand::spare(Ppn at) {
  ++operations_.spare_reads;
  busy_ns_ += timing_.spare_read_ns;
  in_register_ = at;
  if (!pages_[at].programmed) return std::nullopt;
  return pages_[at].spare;
}

void SerialNand::cut_after(uint64_t operations, uint64_t seed) {
  left_ = operations;
  seed_ = seed;
}

void SerialNand::power_on() {
  powered_ = true;
  left_ = UINT64_MAX;
}

SerialNand::Fate SerialNand::operate() {
  if (left_-- != 0) return Fate::kDone;
  powered_ = false;
  return static_cast<Fate>(Random(seed_).below(3));
}

}  // namespace streamfs::ssd
