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

// Returns a bit for each byte of a map word that says `kind`.
uint64_t bytes_saying(UnitKind kind, uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101, kLow = 0x7f * kOnes;
  const uint64_t differs = word ^ static_cast<uint8_t>(kind) * kOnes;
  const uint64_t same = ~(((differs & kLow) + kLow) | differs | kLow);  // top bits
  return (same >> 7U) * 0x0102040810204080 >> 56U;
}

}  // namespace

uint64_t heap_reserve(uint64_t units) {
  return std::max<uint64_t>(8, units / 20);
}

UnitHeader read_header(const pmem::Region& region, uint64_t unit_offset) {
  std::array<uint64_t, sizeof(UnitHeader) / kWordSize> words{};
  for (size_t i = 0; i < words.size(); ++i) words[i] = region.load(unit_offset + i * kWordSize);
  return std::bit_cast<UnitHeader>(words);
}

UnitKind read_unit_kind(const pmem::Region& region, const Geometry& geometry, uint64_t unit) {
  const MapByte at = map_byte(geometry, unit);
  return static_cast<UnitKind>(region.load(at.word) >> at.shift & 0xff);
}

void store_unit_kind(pmem::Region& region, const Geometry& geometry, uint64_t unit, UnitKind kind) {
  const MapByte at = map_byte(geometry, unit);
  region.store_masked(at.word, uint64_t{0xff} << at.shift,
                      uint64_t{static_cast<uint8_t>(kind)} << at.shift);
}

void put_unit_kind(Transaction& tx, const Geometry& geometry, uint64_t unit, UnitKind kind) {
  const MapByte at = map_byte(geometry, unit);
  tx.mask(at.word, uint64_t{0xff} << at.shift, uint64_t{static_cast<uint8_t>(kind)} << at.shift);
}

Heap::Heap(const Store& store)
    : store_(store),
      units_(store.geometry.heap_units()),
      reserve_(heap_reserve(units_)),
      groups_(div_round_up(units_, kGroupUnits)) {}

// Reads a group, a map word at a time. A page of the map never crosses a segment.
void Heap::read(uint64_t number, bool keep_bits) {
  Group& group = groups_[number];
  const uint64_t first = number * kGroupUnits, end = std::min(first + kGroupUnits, units_);
  if (keep_bits)
    group.free.bits.resize(kGroupUnits / 64), group.dirty.bits.resize(kGroupUnits / 64);
  uint64_t at = 0, free = 0, dirty = 0;
  for (uint64_t unit = first; unit < end; unit += kWordSize, at += kWordSize) {
    if (unit % kUnitSize == 0) at = map_byte(store_.geometry, unit).word;
    const uint64_t word = store_.region.load(at);
    const uint64_t there = end - unit >= kWordSize ? 0xff : (uint64_t{1} << (end - unit)) - 1;
    const uint64_t is_free = bytes_saying(UnitKind::kFree, word) & there;
    const uint64_t is_dirty = bytes_saying(UnitKind::kDirty, word) & there;
    free += static_cast<uint64_t>(std::popcount(is_free));
    dirty += static_cast<uint64_t>(std::popcount(is_dirty));
    if (!group.counted) {
      inode_units_ +=
          static_cast<uint64_t>(std::popcount(bytes_saying(UnitKind::kInodes, word) & there));
    }
    if (!keep_bits) continue;
    const uint64_t index = unit - first;
    group.free.bits[index / 64] |= is_free << index % 64;
    group.dirty.bits[index / 64] |= is_dirty << index % 64;
  }
  group.free.units = static_cast<uint32_t>(free);
  group.dirty.units = static_cast<uint32_t>(dirty);
}

void Heap::count(uint64_t number) {
  Group& group = groups_[number];
  if (group.counted) return;
  read(number, false);
  group.counted = true;
  free_ += group.free.units;
  dirty_ += group.dirty.units;
}

void Heap::open_group(uint64_t number) {
  count(number);
  if (groups_[number].free.bits.empty()) read(number, true);
}

void Heap::count_all() {
  for (; counted_ < groups_.size(); ++counted_) count(counted_);
}

// Counts groups only until the answer is certain.
bool Heap::more_than(uint64_t units) {
  for (; known() <= units && counted_ < groups_.size(); ++counted_) count(counted_);
  return known() > units;
}

// A group that is not counted yet will be read with its new units. Among the counted groups only
// the last can have room for more units.
void Heap::grow() {
  const MutexLock lock(mutex_);
  const uint64_t before = units_, number = groups_.size() - 1;
  const uint64_t end = std::min(groups_.size() * kGroupUnits, total());
  const bool last_is_known = end > before && groups_[number].counted;
  if (last_is_known) open_group(number);
  units_ = total();
  reserve_ = heap_reserve(units_);
  groups_.resize(div_round_up(units_, kGroupUnits));
  if (!last_is_known) return;
  for (uint64_t unit = before; unit < end; ++unit) add(unit, &Group::free);
}

UnitKind Heap::kind(uint64_t unit) const {
  return read_unit_kind(store_.region, store_.geometry, unit);
}

uint64_t Heap::unit_at(uint64_t offset) const {
  const std::optional<uint64_t> unit = store_.geometry.unit_of(offset);
  SFS_ASSERT(unit.has_value());
  return unit.value_or(0);
}

void Heap::open_reserve() {
  const MutexLock lock(mutex_);
  reserve_ = 0;
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
  if (purpose == Purpose::kCreate && !more_than(reserve_)) return std::nullopt;
  if (const auto unit = pick_free()) return unit;
  promote();
  return pick_from(&Group::dirty);
}

std::optional<uint64_t> Heap::pick_free() {
  while (const auto unit = pick_from(&Group::free)) {
    // A published object where the map says "free" is damage, which fsck may repair: it stays.
    if (!published(store_.region, store_.geometry.unit_offset(*unit))) return unit;
  }
  return std::nullopt;
}

std::optional<uint64_t> Heap::pick_from(Pool Group::* which) {
  uint64_t& all = which == &Group::free ? free_ : dirty_;
  for (uint64_t i = 0; i < groups_.size() && (all > 0 || counted_ < groups_.size()); ++i) {
    const uint64_t number = (cursor_ + i) % groups_.size();
    count(number);
    Pool& pool = groups_[number].*which;
    if (pool.units == 0) continue;
    open_group(number);
    cursor_ = number;
    while (pool.bits[pool.word] == 0) pool.word = (pool.word + 1) % (kGroupUnits / 64);
    const auto bit = static_cast<uint64_t>(std::countr_zero(pool.bits[pool.word]));
    pool.bits[pool.word] &= ~(uint64_t{1} << bit);
    --pool.units;
    --all;
    return number * kGroupUnits + uint64_t{pool.word} * 64 + bit;
  }
  return std::nullopt;
}

void Heap::add(uint64_t unit, Pool Group::* which) {
  Pool& pool = groups_[unit / kGroupUnits].*which;  // its group was read when it was taken or put
  pool.bits[unit % kGroupUnits / 64] |= uint64_t{1} << unit % 64;
  ++pool.units;
  ++(which == &Group::free ? free_ : dirty_);
}

void Heap::promote() {
  const TxId watermark = store_.journal.watermark();
  for (; !waiting_.empty() && waiting_.front().tx <= watermark; waiting_.pop_front()) {
    add(waiting_.front().unit, &Group::dirty);
  }
}

void Heap::clear(uint64_t offset) const {
  const bool zero = std::memcmp(store_.region.at(offset), kZeroUnit.data(), kUnitSize) == 0;
  if (zero && store_.region.alike(offset, kUnitSize)) return;
  store_.region.store(offset, kZeroUnit);
  // The fence comes before any record that gives the unit to an object can be valid.
  store_.region.fence(store_.region.flush(offset, kUnitSize));
}

void Heap::give_back(uint64_t offset) {
  const uint64_t unit = unit_at(offset);
  const bool was_dirty = kind(unit) == UnitKind::kDirty;
  const MutexLock lock(mutex_);
  add(unit, was_dirty ? &Group::dirty : &Group::free);
}

void Heap::put_unit(Transaction& tx, uint64_t offset, UnitKind kind, InodeId owner, uint64_t next) {
  put_kind(tx, offset, kind);
  tx.patch(offset, unit_owner(owner, kind));
  tx.patch(offset + offsetof(UnitHeader, next), next);
}

void Heap::put_kind(Transaction& tx, uint64_t offset, UnitKind kind) {
  const uint64_t unit = unit_at(offset);
  {
    const MutexLock lock(mutex_);
    open_group(unit / kGroupUnits);
  }
  put_unit_kind(tx, store_.geometry, unit, kind);
}

void Heap::freed(uint64_t offset, TxId tx) {
  const MutexLock lock(mutex_);
  waiting_.push_back({unit_at(offset), tx});
}

uint64_t Heap::available() {
  const MutexLock lock(mutex_);
  count_all();
  return known();
}

uint64_t Heap::inode_units_at_open() {
  const MutexLock lock(mutex_);
  count_all();
  return inode_units_;
}

bool Heap::nearly_full() {
  constexpr uint64_t kUnitsOfOneChange = 32;
  const MutexLock lock(mutex_);
  return !more_than(std::max(units_ / 10, reserve_ + kUnitsOfOneChange));
}

bool Heap::scarce() {
  const MutexLock lock(mutex_);
  return !more_than(reserve_);
}

}  // namespace streamfs::meta
