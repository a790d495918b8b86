#include "fuse-fs/meta/heap.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kUnitWords = kUnitSize / kWordSize;
constexpr std::array<uint64_t, kUnitWords> kZeroUnit{};

struct MapByte {
  uint64_t word;  // META offset
  uint64_t shift;
};

MapByte map_byte(const Geometry& geometry, uint64_t unit) {
  const uint64_t at = geometry.region_offset(RegionKind::kHeapMap, unit);
  return {round_down(at, kWordSize), at % kWordSize * 8};
}

}  // namespace

UnitHeader read_header(const pmem::Region& region, uint64_t unit_offset) {
  std::array<uint64_t, sizeof(UnitHeader) / kWordSize> words{};
  for (size_t i = 0; i < words.size(); ++i) words[i] = region.load(unit_offset + i * kWordSize);
  return std::bit_cast<UnitHeader>(words);
}

UnitKind read_unit_kind(const pmem::Region& region, const Geometry& geometry, uint64_t unit) {
  const MapByte at = map_byte(geometry, unit);
  return static_cast<UnitKind>(region.load(at.word) >> at.shift & 0xff);
}

void put_unit_kind(Transaction& tx, const Geometry& geometry, uint64_t unit, UnitKind kind) {
  const MapByte at = map_byte(geometry, unit);
  tx.mask(at.word, uint64_t{0xff} << at.shift, uint64_t{static_cast<uint8_t>(kind)} << at.shift);
}

Heap::Heap(const Store& store)
    : store_(store),
      reserve_(std::max<uint64_t>(8, store.geometry.heap_units() / 20)),
      free_(div_round_up(store.geometry.heap_units(), 64)) {
  const MutexLock lock(mutex_);
  for (uint64_t unit = 0; unit < total(); ++unit) {  // a map word at a time
    uint64_t word = store_.region.load(map_byte(store_.geometry, unit).word);
    for (const uint64_t end = std::min(unit + kWordSize, total());; ++unit, word >>= 8) {
      load(unit, static_cast<UnitKind>(word & 0xff));
      if (unit + 1 == end) break;
    }
  }
}

void Heap::load(uint64_t unit, UnitKind kind) {
  if (kind == UnitKind::kFree) {
    free_[unit / 64] |= uint64_t{1} << unit % 64;
    ++free_count_;
  } else if (kind == UnitKind::kDirty) {
    dirty_.push_back({unit, TxId{0}});
  } else if (kind == UnitKind::kInodes) {
    ++inode_units_;
  }
}

UnitKind Heap::kind(uint64_t unit) const {
  return read_unit_kind(store_.region, store_.geometry, unit);
}

uint64_t Heap::unit_at(uint64_t offset) const {
  const std::optional<uint64_t> unit = store_.geometry.unit_of(offset);
  SFS_ASSERT(unit.has_value());
  return unit.value_or(0);
}

Result<Heap::Claim> Heap::take(Purpose purpose) {
  std::optional<uint64_t> unit = pick(purpose);
  if (!unit) {
    if (purpose == Purpose::kCreate && scarce()) return Error{ENOSPC, "metadata heap"};
    store_.journal.checkpoint();  // Dirty units may only be waiting for the watermark.
    unit = pick(purpose);
  }
  if (!unit) return Error{ENOSPC, "metadata heap"};
  const uint64_t offset = store_.geometry.unit_offset(*unit);
  clear(offset);
  return Claim(*this, offset);
}

std::optional<uint64_t> Heap::pick(Purpose purpose) {
  const MutexLock lock(mutex_);
  if (purpose == Purpose::kCreate && free_count_ + dirty_.size() <= reserve_) return std::nullopt;
  if (const auto unit = pick_free()) return unit;
  if (dirty_.empty() || dirty_.front().tx > store_.journal.watermark()) return std::nullopt;
  const uint64_t unit = dirty_.front().unit;
  dirty_.pop_front();
  return unit;
}

std::optional<uint64_t> Heap::pick_free() {
  while (free_count_ > 0) {
    while (free_[cursor_] == 0) cursor_ = (cursor_ + 1) % free_.size();
    const auto bit = static_cast<uint64_t>(std::countr_zero(free_[cursor_]));
    free_[cursor_] &= ~(uint64_t{1} << bit);
    --free_count_;
    const uint64_t unit = cursor_ * 64 + bit;
    // A published object where the map says "free" is damage: fsck's, not ours to overwrite.
    if (store_.region.load(store_.geometry.unit_offset(unit)) == 0) return unit;
  }
  return std::nullopt;
}

void Heap::clear(uint64_t offset) const {
  if (std::memcmp(store_.region.at(offset), kZeroUnit.data(), kUnitSize) == 0) return;
  store_.region.store(offset, kZeroUnit);
  store_.region.flush(offset, kUnitSize);
  store_.region.fence();  // before any record that makes the unit somebody's can be valid
}

void Heap::give_back(uint64_t offset) {
  const uint64_t unit = unit_at(offset);
  const bool was_dirty = kind(unit) == UnitKind::kDirty;
  const MutexLock lock(mutex_);
  if (was_dirty) {
    dirty_.push_front({unit, TxId{0}});
    return;
  }
  free_[unit / 64] |= uint64_t{1} << unit % 64;
  ++free_count_;
}

void Heap::put_unit(Transaction& tx, uint64_t offset, UnitKind kind, InodeId owner,
                    uint64_t next) const {
  put_kind(tx, offset, kind);
  tx.patch(offset, unit_owner(owner, kind));
  tx.patch(offset + offsetof(UnitHeader, next), next);
}

void Heap::put_kind(Transaction& tx, uint64_t offset, UnitKind kind) const {
  put_unit_kind(tx, store_.geometry, unit_at(offset), kind);
}

void Heap::freed(uint64_t offset, TxId tx) {
  const MutexLock lock(mutex_);
  dirty_.push_back({unit_at(offset), tx});
}

bool Heap::is_unit(uint64_t offset, UnitKind kind, InodeId owner) const {
  const std::optional<uint64_t> unit = store_.geometry.unit_of(offset);
  return unit && store_.geometry.unit_offset(*unit) == offset && this->kind(*unit) == kind &&
         read_header(store_.region, offset).owner == unit_owner(owner, kind);
}

Result<std::vector<uint64_t>> Heap::chain(uint64_t first, UnitKind kind, InodeId owner) const {
  std::vector<uint64_t> units;
  for (uint64_t at = first; at != 0; at = read_header(store_.region, at).next) {
    if (!is_unit(at, kind, owner) || units.size() >= total()) {
      return Error{EIO, "broken chain of heap units"};
    }
    units.push_back(at);
  }
  return units;
}

bool Heap::is_inode_slot(InodeId id) const {
  if (id.value >= store_.geometry.meta_size() / kCellSize) return false;
  const std::optional<uint64_t> unit = store_.geometry.unit_of(id.value * kCellSize);
  return unit && kind(*unit) == UnitKind::kInodes;
}

uint64_t Heap::available() const {
  const MutexLock lock(mutex_);
  return free_count_ + dirty_.size();
}

}  // namespace streamfs::meta
