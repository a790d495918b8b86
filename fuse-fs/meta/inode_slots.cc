#include "fuse-fs/meta/inode_slots.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/inode.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kUnitsPerScan = 16;
constexpr uint64_t kAllUnits = ~uint64_t{0};
// Free slots that stay when units leave: a program that makes and removes a file over and over
// shall not make and clear a unit each time.
constexpr uint64_t kSlotsKept = 4 * uint64_t{kInodesPerUnit};
constexpr uint16_t kAllSlots = 0xffff;

InodeId slot_of(uint64_t unit_offset, uint64_t index) {
  return InodeId{unit_offset / kCellSize + index};
}

uint16_t bit_of(InodeId id) {
  return static_cast<uint16_t>(1u << inode_offset(id) % kUnitSize / kCellSize);
}

uint64_t count(uint16_t slots) {
  return static_cast<uint64_t>(std::popcount(slots));
}

}  // namespace

InodeSlots::Claim::~Claim() {
  if (slots_ != nullptr && !unit_) slots_->give_back(id_);
}

uint32_t InodeSlots::Claim::generation() const {
  const Store& store = slots_->heap_.store();
  const uint32_t last = load_image(store.region, id_).generation;
  // A unit that was cleared has forgotten who lived in it; the journal never goes back.
  return (last != 0 ? last : static_cast<uint32_t>(store.journal.last().value)) + 1;
}

void InodeSlots::Claim::put(Transaction& tx) const {
  if (unit_) slots_->heap_.put_kind(tx, unit_.offset(), UnitKind::kInodes);
}

void InodeSlots::Claim::keep() {
  unit_.keep();
  slots_->born(id_, static_cast<bool>(unit_));
  slots_ = nullptr;
}

InodeSlots::Emptied::~Emptied() {
  if (slots_ != nullptr) slots_->stay(unit_);
}

void InodeSlots::Emptied::put(Transaction& tx) const {
  if (slots_ == nullptr) return;
  put_unit_kind(tx, slots_->heap_.store().geometry, unit_, UnitKind::kDirty);
}

void InodeSlots::Emptied::keep(TxId tx) {
  if (slots_ != nullptr) std::exchange(slots_, nullptr)->leave(unit_, tx);
}

InodeSlots::InodeSlots(Heap& heap, std::optional<uint64_t> used_hint)
    : heap_(heap), units_(heap.total()), exact_(used_hint.has_value()) {
  used_ = used_hint ? *used_hint : heap.inode_units_at_open() * kInodesPerUnit;
}

InodeSlots::Unit& InodeSlots::unit_of(InodeId id) {
  return units_[heap_.unit_at(inode_offset(id))];
}

Result<InodeSlots::Claim> InodeSlots::take() {
  if (const auto id = pick(kUnitsPerScan)) return Claim(*this, *id, {});
  auto unit = heap_.take(Heap::Purpose::kCreate);
  if (unit) {
    const InodeId id = slot_of(unit->offset(), 0);
    return Claim(*this, id, std::move(unit).value());
  }
  heap_.store().journal.checkpoint();  // Slots may only be waiting for the watermark.
  if (const auto id = pick(kAllUnits)) return Claim(*this, *id, {});
  return unit.error();
}

std::optional<InodeId> InodeSlots::pick(uint64_t units_to_scan) {
  const MutexLock lock(mutex_);
  if (const auto id = pick_free()) return id;
  promote();
  if (const auto id = pick_free()) return id;
  scan(units_to_scan);
  return pick_free();
}

std::optional<InodeId> InodeSlots::pick_free() {
  for (; !roomy_.empty(); roomy_.pop_back()) {
    Unit& unit = units_[roomy_.back()];
    if (unit.free == 0 || unit.leaving) {
      unit.listed = false;
      continue;
    }
    const auto index = static_cast<uint64_t>(std::countr_zero(unit.free));
    unit.free = static_cast<uint16_t>(unit.free & (unit.free - 1));
    --free_;
    return slot_of(heap_.store().geometry.unit_offset(roomy_.back()), index);
  }
  return std::nullopt;
}

void InodeSlots::add_free(uint64_t number, uint16_t slots) {
  Unit& unit = units_[number];
  unit.free |= slots;
  free_ += count(slots);
  if (unit.free == 0 || unit.listed) return;
  unit.listed = true;
  roomy_.push_back(number);
}

void InodeSlots::promote() {
  const TxId watermark = heap_.store().journal.watermark();
  while (!freed_.empty() && freed_.front().tx <= watermark) {
    const InodeId id = freed_.front().id;
    freed_.pop_front();
    Unit& unit = unit_of(id);
    const uint16_t bit = bit_of(id);
    if ((unit.waiting & bit) == 0) continue;  // it left with its unit
    unit.waiting = static_cast<uint16_t>(unit.waiting & ~bit);
    --waiting_;
    // A unit not looked at yet will show the slot by itself.
    if (unit.scanned) add_free(heap_.unit_at(inode_offset(id)), bit);
  }
}

void InodeSlots::scan(uint64_t units) {
  for (; cursor_ < units_.size() && units > 0 && free_ < kInodesPerUnit; ++cursor_) {
    if (units_[cursor_].scanned || heap_.kind(cursor_) != UnitKind::kInodes) continue;
    scan_unit(cursor_);
    --units;
  }
}

void InodeSlots::scan_unit(uint64_t number) {
  units_[number].scanned = true;
  const uint64_t base = heap_.store().geometry.unit_offset(number);
  uint16_t found = 0;
  for (uint64_t index = 0; index < kInodesPerUnit; ++index) {
    const InodeId id = slot_of(base, index);
    if (heap_.store().region.load(inode_offset(id)) == 0) found |= bit_of(id);
  }
  found = static_cast<uint16_t>(found & ~units_[number].waiting);
  if (!exact_) used_ -= std::min(used_, count(found));
  add_free(number, found);
}

void InodeSlots::give_back(InodeId id) {
  const MutexLock lock(mutex_);
  add_free(heap_.unit_at(inode_offset(id)), bit_of(id));
}

void InodeSlots::born(InodeId id, bool fresh_unit) {
  const MutexLock lock(mutex_);
  ++used_;
  if (!fresh_unit) return;
  // Slots that waited here in an earlier life of the unit: the watermark has passed them, or the
  // heap would not have given it.
  promote();
  unit_of(id).scanned = true;
  add_free(heap_.unit_at(inode_offset(id)), static_cast<uint16_t>(kAllSlots & ~bit_of(id)));
}

InodeSlots::Emptied InodeSlots::emptied_by(InodeId id) {
  const MutexLock lock(mutex_);
  if (free_ + waiting_ < kSlotsKept + kInodesPerUnit) return {};
  const uint64_t number = heap_.unit_at(inode_offset(id));
  if (!units_[number].scanned) scan_unit(number);
  Unit& unit = units_[number];
  if ((unit.free | unit.waiting | bit_of(id)) != kAllSlots || unit.leaving) return {};
  unit.leaving = true;
  return {*this, number};
}

void InodeSlots::stay(uint64_t number) {
  const MutexLock lock(mutex_);
  units_[number].leaving = false;
  add_free(number, 0);
}

void InodeSlots::leave(uint64_t number, TxId tx) {
  {
    const MutexLock lock(mutex_);
    Unit& unit = units_[number];
    free_ -= count(unit.free);
    waiting_ -= count(unit.waiting);
    if (used_ > 0) --used_;
    unit = {.listed = unit.listed};
  }
  heap_.freed(heap_.store().geometry.unit_offset(number), tx);
}

void InodeSlots::freed(InodeId id, TxId tx) {
  const MutexLock lock(mutex_);
  freed_.push_back({id, tx});
  unit_of(id).waiting |= bit_of(id);
  ++waiting_;
  if (used_ > 0) --used_;
}

uint64_t InodeSlots::used() const {
  const MutexLock lock(mutex_);
  return used_;
}

}  // namespace streamfs::meta
