// Moves the slots behind a range that was collapsed or inserted, a bounded record at a time.
//
// committed_ has the new positions at once; what a slot holds on the media, shift_'s border says.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/result.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/inode.h"

namespace streamfs::meta {

Result<ExtentMap::Plan> ExtentMap::plan_shift(Transaction& tx, InodeImage& next, Shift shift) {
  Plan plan;
  shift.border = shift.at + shift.count;
  if (shift.insert)
    shift.border = committed_.empty() ? shift.at : committed_.rbegin()->second.extent.end();
  SFS_TRY(plan_cut(tx, next, plan, shift));
  shift_ = shift;
  SFS_TRY(settle_all());
  uint64_t gone = 0;
  for (const BlockRun& run : plan.collapsed) gone += run.count;
  for (const Collapsed& slot : collapsed_) gone += slot.run.count;
  set_block_count(next, block_count(next) - std::min(gone, block_count(next)));
  go_on_shifting(tx, next, plan);
  return plan;
}

// The committed extent that lies across this block's beginning.
std::optional<uint64_t> ExtentMap::crossing(uint64_t border) const {
  const auto after = committed_.lower_bound(border);
  if (after == committed_.begin() || std::prev(after)->second.extent.end() <= border)
    return std::nullopt;
  return std::prev(after)->first;
}

// No slot lies across a border afterwards.
Result<void> ExtentMap::plan_cut(Transaction& tx, InodeImage& next, Plan& plan,
                                 const Shift& shift) {
  const uint64_t end = shift.at + shift.count;
  if (const auto key = crossing(shift.at)) {
    if (shift.insert) return split(tx, next, plan, *key, shift.at);
    const uint64_t stop = std::min(end, committed_.at(*key).extent.end());
    SFS_TRY(plan_removal(tx, next, plan, *key, shift.at, stop));
  }
  if (shift.insert) return {};
  if (const auto key = crossing(end)) SFS_TRY(plan_removal(tx, next, plan, *key, *key, end));
  plan.collapsed = std::exchange(plan.freed, {});
  return {};
}

Result<void> ExtentMap::split(Transaction& tx, InodeImage& next, Plan& plan, uint64_t key,
                              uint64_t at) {
  ++plan.steps;
  Committed& whole = committed_.at(key);
  const Extent old = whole.extent;
  Extent tail = old;
  tail.first = at;
  tail.length = old.end() - at;
  tail.block += at - old.first;
  whole.extent.length = at - old.first;
  write_slot(tx, next, whole.slot, whole.extent, &old);
  SFS_ASSIGN(const uint64_t slot, take_slot(tx, next, plan));
  write_slot(tx, next, slot, tail, nullptr);
  committed_.emplace(at, Committed{tail, slot});
  return {};
}

// committed_ has the slots as they are, and gets them as they will be.
Result<void> ExtentMap::settle_all() {
  for (const auto& [first, found] : std::exchange(committed_, {})) {
    SFS_TRY(load_slot(found.extent, found.slot));
  }
  return {};
}

// Nothing to do without a shift. What goes, goes first: nothing is moved onto it.
void ExtentMap::go_on_shifting(Transaction& tx, InodeImage& next, Plan& plan) {
  if (!shift_) return;
  Shift& shift = *shift_;
  bool left = true;
  for (; left && plan.steps < Plan::kMaxSteps; ++plan.steps) {
    if (collapsed_.empty()) {
      left = move_one(tx, next, shift);
      continue;
    }
    plan.collapsed.push_back(collapsed_.back().run);
    clear_slot(tx, next, collapsed_.back().slot);
    collapsed_.pop_back();
  }
  if (!left) shift_.reset();
  plan.complete = !left;
  plan.shifting = left;
  put_shift(next, shift_);
}

// False when none waits.
bool ExtentMap::move_one(Transaction& tx, InodeImage& next, Shift& shift) {
  auto waiting = shift.insert ? committed_.lower_bound(shift.border + shift.count)
                              : committed_.lower_bound(shift.border - shift.count);
  if (shift.insert) {
    if (waiting == committed_.begin()) return false;
    --waiting;
    if (waiting->first < shift.at + shift.count) return false;
  } else if (waiting == committed_.end()) {
    return false;
  }
  const auto& [extent, slot] = waiting->second;
  write_slot(tx, next, slot, extent, nullptr);
  shift.border = shift.insert ? extent.first - shift.count : extent.end() + shift.count;
  return true;
}

}  // namespace streamfs::meta
