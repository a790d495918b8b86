// Moves an extent map's overlay into slots, a bounded record at a time.
//
// A plan changes committed_ at once, because later steps of the record build on earlier ones. The
// overlay stays until done(). restore() loads committed_ again from META, in which a failed commit
// has changed nothing.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/first_past.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kLengthWord = 16;  // of a slot: length and checksum

using SlotWords = std::array<uint64_t, sizeof(ExtentSlot) / kWordSize>;

}  // namespace

Result<ExtentMap::Plan> ExtentMap::plan(Transaction& tx, InodeImage& next, uint64_t epoch) {
  Plan plan;
  SFS_TRY(plan_removals(tx, next, plan));
  if (!plan.complete) return plan;
  for (auto at = added_.begin(); plan.complete && at != added_.end(); ++at) {
    const auto& [first, added] = *at;
    if (added.epoch > epoch) continue;
    const Blocks blocks = added.in_place ? Blocks::kKept : Blocks::kFreed;
    const uint64_t end = room_up_to(added.extent, plan.steps);
    plan.complete = end == added.extent.end();
    if (end == first) break;
    if (!plan.complete) split_added(first, end);
    // The same record removes what the extent replaces, so that no crash leaves neither of them.
    SFS_ASSIGN(const uint64_t replaced, plan_removals_in(tx, next, plan, first, end, blocks));
    SFS_ASSERT(replaced == end);
    SFS_TRY(plan_added(tx, next, plan, added));
    plan.added.push_back(first);
  }
  return plan;
}

// Returns the end of the part of `extent` that a record has room for after so many steps, together
// with what that part replaces.
uint64_t ExtentMap::room_up_to(const Extent& extent, uint32_t steps) const {
  if (steps++ >= Plan::kMaxSteps) return extent.first;
  auto old = first_past(committed_, extent.first, kEndOfExtent);
  for (; old != committed_.end() && old->first < extent.end(); ++old) {
    if (steps++ >= Plan::kMaxSteps) return std::max(old->first, extent.first);
  }
  return extent.end();
}

Result<void> ExtentMap::plan_removals(Transaction& tx, InodeImage& next, Plan& plan) {
  for (const auto& [first, removed] : removed_) {
    if (removed.epoch) continue;
    SFS_ASSIGN(plan.removed_up_to,
               plan_removals_in(tx, next, plan, first, removed.end, Blocks::kFreed));
    if (plan.removed_up_to == removed.end) continue;
    plan.complete = false;
    break;
  }
  return {};
}

// Plans the removal of committed extents in [first, end). Returns how far the record has room for
// that.
Result<uint64_t> ExtentMap::plan_removals_in(Transaction& tx, InodeImage& next, Plan& plan,
                                             uint64_t first, uint64_t end, Blocks blocks) {
  for (uint64_t at = first; at < end;) {
    const auto found = first_past(committed_, at, kEndOfExtent);
    if (found == committed_.end() || found->first >= end) break;
    if (plan.steps >= Plan::kMaxSteps) return at;
    const uint64_t stop = std::min(end, found->second.extent.end());
    SFS_TRY(plan_removal(tx, next, plan, found->first, std::max(at, found->first), stop, blocks));
    at = stop;
  }
  return end;
}

// Removes [first, end) from the committed extent at `key`, which covers it.
Result<void> ExtentMap::plan_removal(Transaction& tx, InodeImage& next, Plan& plan, uint64_t key,
                                     uint64_t first, uint64_t end, Blocks blocks) {
  ++plan.steps;
  const Committed old = committed_.at(key);
  const Extent& extent = old.extent;
  if (blocks == Blocks::kFreed)
    plan.freed.push_back({BlockNo{extent.block + (first - extent.first)}, end - first});
  Extent head = extent, tail = extent;
  head.length = first - extent.first;
  tail.first = end;
  tail.length = extent.end() - end;
  tail.block += end - extent.first;

  committed_.erase(key);
  if (head.length == 0 && tail.length == 0) {
    clear_slot(tx, next, old.slot);
    return {};
  }
  const Extent& kept = head.length > 0 ? head : tail;
  write_slot(tx, next, old.slot, kept, &extent);
  committed_.emplace(kept.first, Committed{kept, old.slot});
  if (head.length == 0 || tail.length == 0) return {};
  SFS_ASSIGN(const uint64_t slot, take_slot(tx, next, plan));
  write_slot(tx, next, slot, tail, nullptr);
  committed_.emplace(tail.first, Committed{tail, slot});
  return {};
}

Result<void> ExtentMap::plan_added(Transaction& tx, InodeImage& next, Plan& plan,
                                   const Added& added) {
  ++plan.steps;
  const Extent& extent = added.extent;
  if (added.in_place) {
    plan.in_place += extent.length;
  } else {
    plan.allocated.push_back({BlockNo{extent.block}, extent.length});
  }
  if (join(tx, next, extent)) return {};
  SFS_ASSIGN(const uint64_t slot, take_slot(tx, next, plan));
  write_slot(tx, next, slot, extent, nullptr);
  committed_.emplace(extent.first, Committed{extent, slot});
  return {};
}

// Joins the extent with the one before it, the one after it, or both, in one slot. Returns false if
// neither joins.
bool ExtentMap::join(Transaction& tx, InodeImage& next, const Extent& extent) {
  const auto after = committed_.lower_bound(extent.first);
  Extent whole = extent;
  const auto before = after == committed_.begin() ? committed_.end() : std::prev(after);
  const bool joins_before = before != committed_.end() && joins(before->second.extent, whole);
  if (joins_before) {
    whole = before->second.extent;
    whole.length += extent.length;
  }
  const bool joins_after = after != committed_.end() && joins(whole, after->second.extent);
  if (!joins_before && !joins_after) return false;
  const Committed last = joins_after ? after->second : before->second;
  if (joins_after) {
    whole.length += last.extent.length;
    committed_.erase(after);
    if (joins_before) clear_slot(tx, next, last.slot);
  }
  const uint64_t slot = joins_before ? before->second.slot : last.slot;
  const Extent old = joins_before ? before->second.extent : last.extent;
  write_slot(tx, next, slot, whole, &old);
  committed_.insert_or_assign(whole.first, Committed{whole, slot});
  return true;
}

Result<Heap::Claim> ExtentMap::take_unit() {
  if (ahead_.empty()) return heap_.take(Heap::Purpose::kMust);
  Heap::Claim unit = std::move(ahead_.back());
  ahead_.pop_back();
  return unit;
}

Result<uint64_t> ExtentMap::take_slot(Transaction& tx, InodeImage& next, Plan& plan) {
  for (uint64_t slot = 0; slot < kInlineExtents; ++slot) {
    if ((next.flags & (kInlineExtent0 << slot)) == 0) {
      ++inline_used_;
      return slot;
    }
  }
  if (free_slots_.empty()) {
    SFS_ASSIGN(Heap::Claim unit, take_unit());
    heap_.put_unit(tx, unit.offset(), UnitKind::kExtents, id_, next.chain);
    next.chain = unit.offset();
    for (uint64_t i = kExtentSlotsPerUnit; i-- > 0;) {
      free_slots_.push_back(unit.offset() + sizeof(UnitHeader) + i * sizeof(ExtentSlot));
    }
    plan.units.push_back(std::move(unit));
  }
  const uint64_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

// `old`: the extent that the slot holds, or null. If the new one differs from it in length only,
// one word is patched.
void ExtentMap::write_slot(Transaction& tx, InodeImage& next, uint64_t slot, const Extent& extent,
                           const Extent* old) const {
  const auto words = std::bit_cast<SlotWords>(encode_extent(extent));
  if (slot < kInlineExtents) {
    std::ranges::copy(words, &next.inline_area[slot * words.size()]);
    next.flags = static_cast<uint16_t>(next.flags | kInlineExtent0 << slot);
    return;
  }
  const bool same_head = old != nullptr && old->first == extent.first &&
                         old->block == extent.block && old->unwritten == extent.unwritten;
  if (same_head) {
    tx.patch(slot + kLengthWord, words[kLengthWord / kWordSize]);
    return;
  }
  tx.patch_words(slot, words);
}

void ExtentMap::clear_slot(Transaction& tx, InodeImage& next, uint64_t slot) {
  if (slot < kInlineExtents) {
    next.flags = static_cast<uint16_t>(next.flags & ~(kInlineExtent0 << slot));
    --inline_used_;
    return;
  }
  tx.patch(slot, 0);
  free_slots_.push_back(slot);
}

void ExtentMap::done(Plan plan) {
  for (Heap::Claim& unit : plan.units) unit.keep();
  for (auto at = removed_.begin(); at != removed_.end() && at->first < plan.removed_up_to;) {
    if (at->second.epoch) {
      ++at;
      continue;
    }
    const Removed rest = at->second;
    at = removed_.erase(at);
    if (rest.end > plan.removed_up_to) removed_.emplace(plan.removed_up_to, rest);
  }
  for (const uint64_t key : plan.added) {
    forget_removed(key, added_.at(key).extent.end());
    added_.erase(key);
  }
  for (const BlockRun& run : plan.allocated) uncommitted_.added -= run.count;
  for (const BlockRun& run : plan.freed) uncommitted_.removed -= run.count;
  uncommitted_.added -= plan.in_place;
  uncommitted_.removed -= plan.in_place;
  if (!dirty()) ahead_.clear();
}

Result<void> ExtentMap::restore(const InodeImage& image) {
  committed_.clear();
  free_slots_.clear();
  inline_used_ = 0;
  return load_slots(image);
}

}  // namespace streamfs::meta
