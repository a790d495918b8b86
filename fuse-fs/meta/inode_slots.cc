#include "fuse-fs/meta/inode_slots.h"

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

InodeId slot_of(uint64_t unit_offset, uint64_t index) {
  return InodeId{unit_offset / kCellSize + index};
}

}  // namespace

InodeSlots::Claim::~Claim() {
  if (slots_ != nullptr && !unit_) slots_->give_back(id_);
}

uint32_t InodeSlots::Claim::generation() const {
  return load_image(slots_->heap_.store().region, id_).generation + 1;
}

void InodeSlots::Claim::put(Transaction& tx) const {
  if (unit_) slots_->heap_.put_kind(tx, unit_.offset(), UnitKind::kInodes);
}

void InodeSlots::Claim::keep() {
  unit_.keep();
  slots_->born(id_, static_cast<bool>(unit_));
  slots_ = nullptr;
}

InodeSlots::InodeSlots(Heap& heap, std::optional<uint64_t> used_hint)
    : heap_(heap), scanned_(heap.total()), exact_(used_hint.has_value()) {
  used_ = used_hint ? *used_hint : heap.inode_units_at_open() * kInodesPerUnit;
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
  if (free_.empty()) promote();
  if (free_.empty()) scan(units_to_scan);
  if (free_.empty()) return std::nullopt;
  const InodeId id = free_.back();
  free_.pop_back();
  return id;
}

void InodeSlots::promote() {
  const TxId watermark = heap_.store().journal.watermark();
  while (!freed_.empty() && freed_.front().tx <= watermark) {
    const InodeId id = freed_.front().id;
    freed_.pop_front();
    waiting_.erase(id);
    // A unit not looked at yet will show the slot by itself.
    if (scanned_[heap_.unit_at(inode_offset(id))]) free_.push_back(id);
  }
}

void InodeSlots::scan(uint64_t units) {
  for (; cursor_ < scanned_.size() && units > 0 && free_.size() < kInodesPerUnit; ++cursor_) {
    if (scanned_[cursor_] || heap_.kind(cursor_) != UnitKind::kInodes) continue;
    scan_unit(cursor_);
    --units;
  }
}

void InodeSlots::scan_unit(uint64_t unit) {
  scanned_[unit] = true;
  const uint64_t base = heap_.store().geometry.unit_offset(unit);
  for (uint64_t index = kInodesPerUnit; index-- > 0;) {
    const InodeId id = slot_of(base, index);
    if (heap_.store().region.load(inode_offset(id)) != 0) continue;
    if (waiting_.contains(id)) continue;
    free_.push_back(id);
    if (!exact_ && used_ > 0) --used_;
  }
}

void InodeSlots::give_back(InodeId id) {
  const MutexLock lock(mutex_);
  free_.push_back(id);
}

void InodeSlots::born(InodeId id, bool fresh_unit) {
  const MutexLock lock(mutex_);
  ++used_;
  if (!fresh_unit) return;
  scanned_[heap_.unit_at(inode_offset(id))] = true;
  for (uint64_t index = kInodesPerUnit; index-- > 1;) free_.push_back(InodeId{id.value + index});
}

void InodeSlots::freed(InodeId id, TxId tx) {
  const MutexLock lock(mutex_);
  freed_.push_back({id, tx});
  waiting_.insert(id);
  if (used_ > 0) --used_;
}

uint64_t InodeSlots::used() const {
  const MutexLock lock(mutex_);
  return used_;
}

}  // namespace streamfs::meta
