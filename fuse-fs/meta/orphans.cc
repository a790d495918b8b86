#include "fuse-fs/meta/orphans.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::meta {

Orphans::Claim::~Claim() {
  if (orphans_ == nullptr) return;
  orphans_->removed(id_);
}

Result<void> Orphans::load(uint64_t head) {
  const MutexLock lock(mutex_);
  next_unit_ = head;
  if (head == 0) return Error{EIO, "no orphan list"};
  return load_next();
}

Result<void> Orphans::load_next() {
  if (!heap_.is_unit(next_unit_, UnitKind::kOrphans, InodeId{0}) || units_ >= heap_.total()) {
    return Error{EIO, "broken chain of heap units"};
  }
  add_unit(next_unit_);
  next_unit_ = read_header(heap_.store().region, next_unit_).next;
  return {};
}

void Orphans::add_unit(uint64_t unit) {
  for (uint64_t index = kOrphansPerUnit; index-- > 0;) {
    const uint64_t slot = unit + sizeof(UnitHeader) + index * kWordSize;
    const InodeId id{heap_.store().region.load(slot)};
    if (id.value == 0) {
      free_.push_back(slot);
    } else {
      Part& part = part_of(id);
      const MutexLock lock(part.mutex);
      part.slots[id] = slot;
      found_.push_back(id);
    }
  }
  last_unit_ = unit;
  ++units_;
}

std::optional<uint64_t> Orphans::find(InodeId id) {
  Part& part = part_of(id);
  const MutexLock lock(part.mutex);
  const auto found = part.slots.find(id);
  return found != part.slots.end() ? std::optional(found->second) : std::nullopt;
}

Result<Orphans::Claim> Orphans::claim(InodeId id) {
  Part& part = part_of(id);
  if (const auto slot = pick(part, id)) return Claim(*this, id, *slot);
  SFS_ASSIGN(const uint64_t slot, pick_from_chain(part, id));
  return Claim(*this, id, slot);
}

std::optional<uint64_t> Orphans::pick(Part& part, InodeId id) {
  const MutexLock lock(part.mutex);
  if (part.free.empty()) return std::nullopt;
  const uint64_t slot = part.free.back();
  part.free.pop_back();
  part.slots[id] = slot;
  return slot;
}

// Takes a slot, and gives the part the other free slots of the slot's cache line.
Result<uint64_t> Orphans::pick_from_chain(Part& part, InodeId id) {
  const MutexLock lock(mutex_);
  if (free_.empty()) collect();
  while (free_.empty() && next_unit_ != 0) SFS_TRY(load_next());
  if (free_.empty()) SFS_TRY(grow());
  const uint64_t slot = free_.back();
  free_.pop_back();
  const MutexLock part_lock(part.mutex);
  part.slots[id] = slot;
  for (; !free_.empty() && free_.back() / kLineSize == slot / kLineSize; free_.pop_back()) {
    part.free.push_back(free_.back());
  }
  return slot;
}

void Orphans::collect() {
  for (Part& part : parts_) {
    const MutexLock lock(part.mutex);
    free_.insert(free_.end(), part.free.begin(), part.free.end());
    part.free.clear();
  }
  std::ranges::sort(free_, std::greater{});  // the slots of a line beside each other again
}

// Adds a unit of 504 slots to the list, in a record of its own.
Result<void> Orphans::grow() {
  SFS_ASSIGN(Heap::Claim unit, heap_.take(Heap::Purpose::kMust));
  Transaction tx(heap_.store().region);
  heap_.put_unit(tx, unit.offset(), UnitKind::kOrphans, InodeId{0}, 0);
  tx.patch(last_unit_ + offsetof(UnitHeader, next), unit.offset());
  SFS_TRY(heap_.store().journal.commit(tx));
  unit.keep();
  add_unit(unit.offset());
  return {};
}

void Orphans::put_remove(Transaction& tx, InodeId id) {
  auto slot = find(id);
  if (!slot) {
    const MutexLock lock(mutex_);
    while (!(slot = find(id)) && next_unit_ != 0 && load_next().ok()) {
    }
  }
  if (slot) tx.patch(*slot, 0);
}

void Orphans::removed(InodeId id) {
  Part& part = part_of(id);
  const MutexLock lock(part.mutex);
  const auto found = part.slots.find(id);
  if (found == part.slots.end()) return;
  part.free.push_back(found->second);
  part.slots.erase(found);
}

std::vector<InodeId> Orphans::leftovers() {
  const MutexLock lock(mutex_);
  while (next_unit_ != 0 && load_next().ok()) {
  }
  std::vector<InodeId> left;
  for (const InodeId id : found_) {
    if (find(id)) left.push_back(id);
  }
  found_ = left;
  return left;
}

}  // namespace streamfs::meta
