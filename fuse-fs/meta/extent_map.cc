// The current view of a file's extents; extent_commit.cc makes it committed.
#include "fuse-fs/meta/extent_map.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/first_past.h"
#include "fuse-fs/meta/image.h"
#include "pmem/region.h"

namespace streamfs::meta {

ExtentSlot encode_extent(const Extent& extent) {
  ExtentSlot slot{};
  slot.head = extent.first | kExtentUsed | uint64_t{extent.vstream} << 48;
  if (extent.unwritten) slot.head |= kExtentUnwritten;
  slot.block = extent.block;
  slot.length = static_cast<uint32_t>(extent.length);
  slot.checksum = extent_checksum(slot);
  return slot;
}

Result<Extent> decode_extent(const ExtentSlot& slot, const Geometry& geometry) {
  if (slot.checksum != extent_checksum(slot) || (slot.head & kExtentUsed) == 0) {
    return Error{EIO, "damaged extent slot"};
  }
  Extent extent;
  extent.first = slot.head & (kExtentUsed - 1);
  extent.length = slot.length;
  extent.block = slot.block;
  extent.vstream = static_cast<uint16_t>(slot.head >> 48);
  extent.unwritten = (slot.head & kExtentUnwritten) != 0;
  const bool in_meta = (slot.head & kExtentInMeta) != 0;
  if (in_meta || extent.length == 0 || extent.end() > kMaxFileBlocks ||
      !geometry.valid_blocks(extent.block, extent.length)) {
    return Error{EIO, "extent out of bounds"};
  }
  return extent;
}

ExtentSlot read_extent_slot(const pmem::Region& region, uint64_t offset) {
  std::array<uint64_t, sizeof(ExtentSlot) / kWordSize> words{};
  for (size_t i = 0; i < words.size(); ++i) words[i] = region.load(offset + i * kWordSize);
  return std::bit_cast<ExtentSlot>(words);
}

Result<Extent> read_extent(const pmem::Region& region, const Geometry& geometry, uint64_t offset,
                           Look look) {
  return read_mended(
      region, "an extent slot", offset, look,
      [&](const pmem::Region& copy) -> Result<Extent> {
        const ExtentSlot slot = read_extent_slot(copy, offset);
        if (slot.head == 0) return Error{ENOENT};
        return decode_extent(slot, geometry);
      },
      [](const auto&) { return sizeof(ExtentSlot); });
}

ExtentSlot inline_slot(const InodeImage& image, size_t slot) {
  std::array<uint64_t, sizeof(ExtentSlot) / kWordSize> words{};
  std::copy_n(&image.inline_area[slot * words.size()], words.size(), words.begin());
  return std::bit_cast<ExtentSlot>(words);
}

Result<std::unique_ptr<ExtentMap>> ExtentMap::load(Heap& heap, InodeId id, const InodeImage& image,
                                                   UncommittedBlocks& uncommitted) {
  std::unique_ptr<ExtentMap> map(new ExtentMap(heap, id, uncommitted));
  SFS_TRY(map->load_slots(image));
  if ((image.flags & kTruncating) != 0) {
    // A truncation was cut between its records: go on with it at the next commit.
    map->remove(div_round_up(image.size, kBlockSize), kMaxFileBlocks);
  }
  return map;
}

Result<void> ExtentMap::load_slots(const InodeImage& image) {
  shift_ = shift_of(image);
  for (uint64_t slot = 0; slot < kInlineExtents; ++slot) {
    if ((image.flags & (kInlineExtent0 << slot)) == 0) continue;
    SFS_ASSIGN(const Extent extent,
               decode_extent(inline_slot(image, slot), heap_.store().geometry));
    SFS_TRY(load_slot(extent, slot));
    ++inline_used_;
  }
  SFS_ASSIGN(const auto units, heap_.chain(image.chain, UnitKind::kExtents, id_));
  for (const uint64_t unit : units) {
    for (uint64_t i = kExtentSlotsPerUnit; i-- > 0;) {
      const uint64_t at = unit + sizeof(UnitHeader) + i * sizeof(ExtentSlot);
      const Result<Extent> extent = read_extent(heap_.store().region, heap_.store().geometry, at);
      if (extent.ok()) {
        SFS_TRY(load_slot(*extent, at));
      } else if (extent.error().code == ENOENT) {
        free_slots_.push_back(at);
      } else {
        return extent.error();
      }
    }
  }
  return {};
}

// An extent where its slot has it.
Result<void> ExtentMap::load_slot(const Extent& extent, uint64_t at) {
  if (!shift_) return add_committed(extent, at);
  SFS_ASSIGN(const std::optional<Extent> settled, shift_->settled(extent));
  if (settled) return add_committed(*settled, at);
  collapsed_.push_back({{BlockNo{extent.block}, extent.length}, at});
  return {};
}

Result<void> ExtentMap::add_committed(const Extent& extent, uint64_t at) {
  const auto after = committed_.lower_bound(extent.first);
  const bool overlaps =
      (after != committed_.end() && after->first < extent.end()) ||
      (after != committed_.begin() && std::prev(after)->second.extent.end() > extent.first);
  if (overlaps) return Error{EIO, "overlapping extents"};
  committed_.emplace_hint(after, extent.first, Committed{extent, at});
  return {};
}

namespace {

Extent cut(const Extent& extent, uint64_t first, uint64_t end) {
  Extent part = extent;
  part.first = first;
  part.length = end - first;
  part.block += first - extent.first;
  return part;
}

constexpr auto kEndOfHidden = [](const auto& entry) { return entry.second.end; };

}  // namespace

uint64_t ExtentMap::bytes() const {
  constexpr uint64_t kNodeBytes = 96;
  return sizeof(ExtentMap) + (committed_.size() + added_.size() + removed_.size()) * kNodeBytes +
         free_slots_.capacity() * sizeof(uint64_t);
}

std::optional<Extent> ExtentMap::next_committed(uint64_t from, uint64_t epoch) const {
  auto hidden = first_past(removed_, from, kEndOfHidden);
  auto found = first_past(committed_, from, kEndOfExtent);
  while (found != committed_.end()) {
    const Extent& extent = found->second.extent;
    const uint64_t start = std::max(from, extent.first);
    if (start >= extent.end()) {
      ++found;
      continue;
    }
    while (hidden != removed_.end() &&
           (hidden->second.end <= start || hidden->second.epoch > epoch))
      ++hidden;
    if (hidden == removed_.end() || hidden->first >= extent.end())
      return cut(extent, start, extent.end());
    if (hidden->first > start) return cut(extent, start, hidden->first);
    from = hidden->second.end;  // start is hidden; a truncated tail is skipped in one step
    found = first_past(committed_, from, kEndOfExtent);
  }
  return std::nullopt;
}

std::optional<Extent> ExtentMap::next(uint64_t from) const {
  std::optional<Extent> best = next_committed(from);
  const auto added = first_past(added_, from, kEndOfExtent);
  if (added == added_.end()) return best;
  const Extent& extent = added->second.extent;
  const uint64_t start = std::max(from, extent.first);
  if (best && best->first < start) return best;
  return cut(extent, start, extent.end());
}

std::vector<BlockRun> ExtentMap::add(const Extent& extent, uint64_t epoch) {
  std::vector<BlockRun> dropped;
  const std::optional<Extent> there = next(extent.first);
  if (there && there->first < extent.end()) dropped = take_out(extent.first, extent.end(), epoch);
  uncommitted_.added += extent.length;
  const auto after = added_.lower_bound(extent.first);
  if (after != added_.begin()) {
    Added& before = std::prev(after)->second;
    const Extent& old = before.extent;
    if (old.end() == extent.first && old.block + old.length == extent.block &&
        old.vstream == extent.vstream && before.epoch == epoch &&
        old.length + extent.length <= kMaxRunBlocks) {
      before.extent.length += extent.length;
      return dropped;
    }
  }
  added_.emplace_hint(after, extent.first, Added{extent, epoch});
  return dropped;
}

std::vector<BlockRun> ExtentMap::remove(uint64_t first, uint64_t count) {
  const uint64_t end =
      count > kMaxFileBlocks ? kMaxFileBlocks : std::min(first + count, kMaxFileBlocks);
  return take_out(first, end, 0);
}

std::vector<BlockRun> ExtentMap::take_out(uint64_t first, uint64_t end, uint64_t epoch) {
  std::vector<BlockRun> dropped = remove_added(first, end);
  let_wait(first, end, epoch);
  for (uint64_t at = first; at < end;) {
    const std::optional<Extent> part = next_committed(at);
    if (!part || part->first >= end) break;
    at = std::min(end, part->end());
    hide(part->first, at, epoch);
    uncommitted_.removed += at - part->first;
  }
  return dropped;
}

std::vector<BlockRun> ExtentMap::remove_added(uint64_t first, uint64_t end) {
  std::vector<BlockRun> dropped;
  auto found = first_past(added_, first, kEndOfExtent);
  while (found != added_.end() && found->first < end) {
    const Added old = found->second;
    found = added_.erase(found);
    const uint64_t from = std::max(first, old.extent.first);
    const uint64_t to = std::min(end, old.extent.end());
    dropped.push_back({BlockNo{cut(old.extent, from, to).block}, to - from});
    uncommitted_.added -= to - from;
    if (old.extent.first < from) {
      added_.emplace(old.extent.first, Added{cut(old.extent, old.extent.first, from), old.epoch});
    }
    if (to < old.extent.end()) {
      found = added_.emplace(to, Added{cut(old.extent, to, old.extent.end()), old.epoch}).first;
      break;
    }
  }
  return dropped;
}

void ExtentMap::hide(uint64_t first, uint64_t end, uint64_t epoch) {
  auto after = removed_.lower_bound(first);
  if (after != removed_.end() && after->first == end && after->second.epoch == epoch) {
    end = after->second.end;
    after = removed_.erase(after);
  }
  if (after != removed_.begin()) {
    Removed& before = std::prev(after)->second;
    if (before.end == first && before.epoch == epoch) {
      before.end = end;
      return;
    }
  }
  removed_.emplace_hint(after, first, Removed{end, epoch});
}

// What replaced this is replaced in turn, or gone.
void ExtentMap::let_wait(uint64_t first, uint64_t end, uint64_t epoch) {
  for (auto at = first_past(removed_, first, kEndOfHidden); at != removed_.end(); ++at) {
    if (at->first >= end) break;
    const Removed old = at->second;
    if (old.epoch == 0 || old.epoch == epoch) continue;
    if (at->first < first) {
      at->second.end = first;
      at = removed_.emplace(first, old).first;
    }
    at->second = {std::min(end, old.end), epoch};
    if (end < old.end) removed_.emplace(end, old);
  }
}

void ExtentMap::split_added(uint64_t first, uint64_t at) {
  Added& whole = added_.at(first);
  const Extent old = whole.extent;
  whole.extent = cut(old, first, at);
  added_.emplace(at, Added{cut(old, at, old.end()), whole.epoch});
}

void ExtentMap::forget_removed(uint64_t first, uint64_t end) {
  for (auto at = first_past(removed_, first, kEndOfHidden);
       at != removed_.end() && at->first < end;) {
    const auto [from, old] = *at;
    at = removed_.erase(at);
    if (from < first) removed_.emplace(from, Removed{first, old.epoch});
    if (old.end > end) removed_.emplace(end, old);
  }
}

void ExtentMap::for_each_added(
    uint64_t epoch, const std::function<void(const Extent&, uint64_t epoch)>& visit) const {
  for (const auto& [first, added] : added_) {
    if (added.epoch <= epoch) visit(added.extent, added.epoch);
  }
}

std::vector<BlockRun> ExtentMap::reserved() const {
  std::vector<BlockRun> runs;
  runs.reserve(added_.size());
  for (const auto& [first, added] : added_) {
    runs.push_back({BlockNo{added.extent.block}, added.extent.length});
  }
  return runs;
}

}  // namespace streamfs::meta
