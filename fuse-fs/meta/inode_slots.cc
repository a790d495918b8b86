#include "fuse-fs/meta/inode_slots.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread_number.h"
#include "base/types.h"
#include "fuse-fs/meta/inode.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kUnitsPerScan = 16;
constexpr uint64_t kAllUnits = ~uint64_t{0};
// Free slots that stay when units leave. With them, a program that makes and removes a file over
// and over does not make and clear a unit each time.
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

InodeSlots::Claim::Claim(InodeSlots& slots, InodeId id, Heap::Claim fresh_unit)
    : slots_(&slots), id_(id), unit_(std::move(fresh_unit)) {
  if (unit_) slots_->claimed_fresh(id_, true);
}

InodeSlots::Claim::~Claim() {
  if (slots_ == nullptr) return;
  if (unit_)
    slots_->claimed_fresh(id_, false);
  else
    slots_->give_back(id_);
}

uint32_t InodeSlots::Claim::generation() const {
  const Store& store = slots_->heap_.store();
  const uint32_t last = load_image(store.region, id_).generation;
  // A unit that was cleared has lost its slots' generations. The watermark is no less than any of
  // them: it has passed the record that freed the unit, and each birth there took an earlier
  // record.
  return (last != 0 ? last : static_cast<uint32_t>(store.journal.watermark().value)) + 1;
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
  const Geometry& geometry = slots_->heap_.store().geometry;
  slots_->heap_.put_kind(tx, geometry.unit_offset(unit_), UnitKind::kDirty);
}

void InodeSlots::Emptied::keep(TxId tx) {
  if (slots_ != nullptr) std::exchange(slots_, nullptr)->leave(unit_, tx);
}

InodeSlots::InodeSlots(Heap& heap, std::optional<uint64_t> used_hint)
    : heap_(heap), units_(div_round_up(heap.total(), kGroup)), used_at_open_(used_hint) {}

InodeSlots::Unit& InodeSlots::unit(uint64_t number) {
  std::unique_ptr<Group>& group = units_[number / kGroup];
  if (!group) group = std::make_unique<Group>();
  return (*group)[number % kGroup];
}

InodeSlots::Unit& InodeSlots::unit_of(InodeId id) {
  return unit(heap_.unit_at(inode_offset(id)));
}

bool InodeSlots::scanned(uint64_t number) const {
  const std::unique_ptr<Group>& group = units_[number / kGroup];
  return group && (*group)[number % kGroup].scanned;
}

InodeSlots::Hand& InodeSlots::my_hand() {
  return hands_[thread_number() % hands_.size()];
}

Result<InodeSlots::Claim> InodeSlots::take() {
  Hand& mine = my_hand();
  if (const auto id = pick(mine, kUnitsPerScan)) return Claim(*this, *id, {});
  auto unit = heap_.take(Heap::Purpose::kCreate);
  if (!unit || heap_.scarce()) {         // the last unit is for objects that need a whole one
    heap_.store().journal.checkpoint();  // Slots may only be waiting for the watermark.
    if (const auto id = pick(mine, kAllUnits)) return Claim(*this, *id, {});
    for (Hand& others : hands_) {
      if (const auto id = pick(others, 0)) return Claim(*this, *id, {});
    }
  }
  if (!unit) return unit.error();
  const InodeId id = slot_of(unit->offset(), 0);
  return Claim(*this, id, std::move(unit).value());
}

std::optional<InodeId> InodeSlots::pick(Hand& hand, uint64_t units_to_scan) {
  const MutexLock lock(hand.mutex);
  if (hand.free == 0) fill(hand, units_to_scan);
  if (hand.free == 0) return std::nullopt;
  const auto index = static_cast<uint64_t>(std::countr_zero(hand.free));
  hand.free = static_cast<uint16_t>(hand.free & (hand.free - 1));
  return slot_of(hand.unit_offset, index);
}

void InodeSlots::fill(Hand& hand, uint64_t units_to_scan) {
  const MutexLock lock(mutex_);
  if (fill_from_roomy(hand)) return;
  promote();
  if (fill_from_roomy(hand)) return;
  scan(units_to_scan, kInodesPerUnit);
  fill_from_roomy(hand);
}

bool InodeSlots::fill_from_roomy(Hand& hand) {
  while (!roomy_.empty()) {
    const uint64_t number = roomy_.back();
    roomy_.pop_back();
    Unit& at = unit(number);
    at.listed = false;
    if (at.free == 0 || at.leaving) continue;
    hand.unit_offset = heap_.store().geometry.unit_offset(number);
    hand.free = std::exchange(at.free, uint16_t{0});
    free_ -= count(hand.free);
    return true;
  }
  return false;
}

void InodeSlots::add_free(uint64_t number, uint16_t slots) {
  Unit& at = unit(number);
  at.free |= slots;
  free_ += count(slots);
  if (at.free == 0 || at.listed) return;
  at.listed = true;
  roomy_.push_back(number);
}

void InodeSlots::promote() {
  const TxId watermark = heap_.store().journal.watermark();
  while (!freed_.empty() && freed_.front().tx <= watermark) {
    const InodeId id = freed_.front().id;
    freed_.pop_front();
    Unit& at = unit_of(id);
    const uint16_t bit = bit_of(id);
    if ((at.waiting & bit) == 0) continue;  // it left with its unit
    at.waiting = static_cast<uint16_t>(at.waiting & ~bit);
    --waiting_;
    add_free(heap_.unit_at(inode_offset(id)), bit);
  }
}

void InodeSlots::scan(uint64_t units, uint64_t enough) {
  for (; cursor_ < heap_.total() && units > 0 && free_ < enough; ++cursor_) {
    if (scanned(cursor_) || heap_.kind(cursor_) != UnitKind::kInodes) continue;
    scan_unit(cursor_);
    --units;
  }
}

void InodeSlots::scan_unit(uint64_t number) {
  Unit& at = unit(number);
  if (at.scanned) return;
  at.scanned = true;
  const uint64_t base = heap_.store().geometry.unit_offset(number);
  uint16_t found = 0;
  for (uint64_t index = 0; index < kInodesPerUnit; ++index) {
    const InodeId id = slot_of(base, index);
    if (!published(heap_.store().region, inode_offset(id))) found |= bit_of(id);
  }
  found_ += count(found);
  add_free(number, found);
}

bool InodeSlots::look_on() {
  const MutexLock lock(mutex_);
  if (used_at_open_) return false;
  scan(kUnitsPerScan, ~uint64_t{0});
  return cursor_ < heap_.total();
}

void InodeSlots::give_back(InodeId id) {
  const MutexLock lock(mutex_);
  add_free(heap_.unit_at(inode_offset(id)), bit_of(id));
}

// Called before its record makes the unit an inode unit, so that scan() does not take it for an
// older one.
void InodeSlots::claimed_fresh(InodeId id, bool claimed) {
  const MutexLock lock(mutex_);
  unit_of(id).scanned = claimed;
}

void InodeSlots::born(InodeId id, bool fresh_unit) {
  counters_.add(kBorn, 1);
  if (!fresh_unit) return;
  Hand& mine = my_hand();
  const MutexLock hand_lock(mine.mutex);
  const MutexLock lock(mutex_);
  // Drops slots that waited in an earlier life of the unit. The watermark has passed them, or the
  // heap would not have given the unit out again.
  promote();
  add_free(heap_.unit_at(inode_offset(id)), static_cast<uint16_t>(kAllSlots & ~bit_of(id)));
  if (mine.free == 0) fill_from_roomy(mine);
}

InodeSlots::Emptied InodeSlots::emptied_by(InodeId id) {
  const MutexLock lock(mutex_);
  const uint64_t number = heap_.unit_at(inode_offset(id));
  scan_unit(number);
  if (free_ + waiting_ < kSlotsKept + kInodesPerUnit) return {};
  Unit& at = unit(number);
  if ((at.free | at.waiting | bit_of(id)) != kAllSlots || at.leaving) return {};
  at.leaving = true;
  return {*this, number};
}

void InodeSlots::stay(uint64_t number) {
  const MutexLock lock(mutex_);
  unit(number).leaving = false;
  add_free(number, 0);
}

void InodeSlots::leave(uint64_t number, TxId tx) {
  {
    const MutexLock lock(mutex_);
    Unit& at = unit(number);
    free_ -= count(at.free);
    waiting_ -= count(at.waiting);
    counters_.add(kGone, 1);
    at = {.listed = at.listed};
  }
  heap_.freed(heap_.store().geometry.unit_offset(number), tx);
}

void InodeSlots::freed(InodeId id, TxId tx) {
  const MutexLock lock(mutex_);
  freed_.push_back({id, tx});
  unit_of(id).waiting |= bit_of(id);
  ++waiting_;
  counters_.add(kGone, 1);
}

void InodeSlots::grow(uint64_t units) {
  const MutexLock lock(mutex_);
  units_.resize(div_round_up(units, kGroup));
}

std::optional<uint64_t> InodeSlots::exactly_used() {
  {
    const MutexLock lock(mutex_);
    if (!used_at_open_ && cursor_ < heap_.total()) return std::nullopt;
  }
  return used();
}

uint64_t InodeSlots::used() {
  const uint64_t at_open =
      used_at_open_ ? *used_at_open_ : heap_.inode_units_at_open() * kInodesPerUnit;
  const MutexLock lock(mutex_);
  // Deaths are summed first, so that no death is counted without its birth.
  const uint64_t gone = counters_.sum(kGone) + (used_at_open_ ? 0 : found_);
  const uint64_t ever = at_open + counters_.sum(kBorn);
  return ever - std::min(ever, gone);
}

}  // namespace streamfs::meta
