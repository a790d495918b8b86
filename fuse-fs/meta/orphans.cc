#include "fuse-fs/meta/orphans.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
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
      slots_[id] = slot;
      found_.push_back(id);
    }
  }
  last_unit_ = unit;
  ++units_;
}

Result<Orphans::Claim> Orphans::claim(InodeId id) {
  const MutexLock lock(mutex_);
  while (free_.empty() && next_unit_ != 0) SFS_TRY(load_next());
  if (free_.empty()) SFS_TRY(grow());
  const uint64_t slot = free_.back();
  free_.pop_back();
  slots_[id] = slot;
  return Claim(*this, id, slot);
}

// Once in 504 nameless inodes, in a record of its own.
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
  const MutexLock lock(mutex_);
  while (!slots_.contains(id) && next_unit_ != 0 && load_next().ok()) {
  }
  const auto found = slots_.find(id);
  if (found != slots_.end()) tx.patch(found->second, 0);
}

void Orphans::removed(InodeId id) {
  const MutexLock lock(mutex_);
  const auto found = slots_.find(id);
  if (found == slots_.end()) return;
  free_.push_back(found->second);
  slots_.erase(found);
}

std::vector<InodeId> Orphans::leftovers() {
  const MutexLock lock(mutex_);
  while (next_unit_ != 0 && load_next().ok()) {
  }
  std::vector<InodeId> left;
  for (const InodeId id : found_) {
    if (slots_.contains(id)) left.push_back(id);
  }
  found_ = left;
  return left;
}

}  // namespace streamfs::meta
