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
#include <utility>
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

bool joins(const Extent& head, const Extent& tail) {
  const uint64_t most = head.unwritten ? kMaxUnwrittenBlocks : kMaxRunBlocks;
  return head.end() == tail.first && head.block + head.length == tail.block &&
         head.vstream == tail.vstream && head.unwritten == tail.unwritten &&
         head.length + tail.length <= most;
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
    // A truncation was cut between its records: the next commit goes on with it.
    map->remove(div_round_up(image.size, kBlockSize), kMaxFileBlocks);
  }
  // A commit that made the file longer was cut between its records: blocks that it wrote past the
  // size must not show.
  if ((image.flags & kExtending) != 0)
    map->unwrite(div_round_up(image.size, kBlockSize), kMaxFileBlocks);
  return map;
}

Result<void> ExtentMap::load_slots(const InodeImage& image) {
  for (uint64_t slot = 0; slot < kInlineExtents; ++slot) {
    if ((image.flags & (kInlineExtent0 << slot)) == 0) continue;
    SFS_ASSIGN(const Extent extent,
               decode_extent(inline_slot(image, slot), heap_.store().geometry));
    SFS_TRY(add_committed(extent, slot));
    ++inline_used_;
  }
  SFS_ASSIGN(const auto units, heap_.chain(image.chain, UnitKind::kExtents, id_));
  for (const uint64_t unit : units) {
    for (uint64_t i = kExtentSlotsPerUnit; i-- > 0;) {
      const uint64_t at = unit + sizeof(UnitHeader) + i * sizeof(ExtentSlot);
      const Result<Extent> extent = read_extent(heap_.store().region, heap_.store().geometry, at);
      if (extent.ok()) {
        SFS_TRY(add_committed(*extent, at));
      } else if (extent.error().code == ENOENT) {
        free_slots_.push_back(at);
      } else {
        return extent.error();
      }
    }
  }
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
           (hidden->second.end <= start || hidden->second.epoch.value_or(0) > epoch))
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

// Adds the extent in parts. A part that names the blocks of a committed extent is in place.
std::vector<ExtentMap::Dropped> ExtentMap::add(const Extent& extent, uint64_t epoch) {
  std::vector<Dropped> dropped;
  for (uint64_t at = extent.first, stop = 0; at < extent.end(); at = stop) {
    stop = extent.unwritten ? std::min(extent.end(), at + kMaxUnwrittenBlocks) : extent.end();
    const std::optional<Extent> there = next(at);
    const bool mapped = there && there->first == at;
    if (there && there->first < stop) stop = mapped ? std::min(stop, there->end()) : there->first;
    const bool same = mapped && there->block == extent.block + (at - extent.first);
    const auto before = first_past(added_, at, kEndOfExtent);
    const bool new_before =
        before != added_.end() && before->first <= at && !before->second.in_place;
    const std::vector<Dropped> gone = take_out(at, stop, epoch);
    if (!same) dropped.insert(dropped.end(), gone.begin(), gone.end());
    add_part({cut(extent, at, stop), epoch, same && !new_before});
  }
  return dropped;
}

void ExtentMap::add_part(const Added& part) {
  const Extent& extent = part.extent;
  uncommitted_.added += extent.length;
  const auto after = added_.lower_bound(extent.first);
  if (after != added_.begin()) {
    Added& before = std::prev(after)->second;
    if (joins(before.extent, extent) && before.epoch == part.epoch &&
        before.in_place == part.in_place) {
      before.extent.length += extent.length;
      return;
    }
  }
  added_.emplace_hint(after, extent.first, part);
}

std::vector<ExtentMap::Dropped> ExtentMap::remove(uint64_t first, uint64_t count) {
  const uint64_t end =
      count > kMaxFileBlocks ? kMaxFileBlocks : std::min(first + count, kMaxFileBlocks);
  return take_out(first, end, std::nullopt);
}

void ExtentMap::unwrite(uint64_t first, uint64_t end) {
  for (uint64_t at = first; at < end;) {
    const std::optional<Extent> there = next(at);
    if (!there || there->first >= end) return;
    at = std::min(end, there->end());
    if (there->unwritten) continue;
    Extent part = cut(*there, there->first, at);
    part.unwritten = true;
    add(part, 0);
  }
}

bool ExtentMap::unwritten_from(uint64_t block) const {
  for (auto at = first_past(committed_, block, kEndOfExtent); at != committed_.end(); ++at) {
    if (at->second.extent.unwritten) return true;
  }
  return false;
}

// An added extent takes two slots at most, and a removal one. A further slot is for an extent that
// a commit has to cut in two.
void ExtentMap::absorb(SlotRoom& room) {
  const uint64_t needed = 2 * added_.size() + removed_.size() + 1;
  uint64_t there = free_slots_.size() + kInlineExtents - inline_used_;
  for (there += ahead_.size() * kExtentSlotsPerUnit; there < needed && !room.units.empty();
       there += kExtentSlotsPerUnit) {
    ahead_.push_back(std::move(room.units.back()));
    room.units.pop_back();
  }
}

std::vector<ExtentMap::Dropped> ExtentMap::take_out(uint64_t first, uint64_t end, Replaced epoch) {
  std::vector<Dropped> dropped = remove_added(first, end);
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

std::vector<ExtentMap::Dropped> ExtentMap::remove_added(uint64_t first, uint64_t end) {
  std::vector<Dropped> dropped;
  auto found = first_past(added_, first, kEndOfExtent);
  while (found != added_.end() && found->first < end) {
    const Added old = found->second;
    found = added_.erase(found);
    const uint64_t from = std::max(first, old.extent.first);
    const uint64_t to = std::min(end, old.extent.end());
    dropped.push_back({{BlockNo{cut(old.extent, from, to).block}, to - from}, old.in_place});
    uncommitted_.added -= to - from;
    if (old.extent.first < from) {
      added_.emplace(old.extent.first,
                     Added{cut(old.extent, old.extent.first, from), old.epoch, old.in_place});
    }
    if (to < old.extent.end()) {
      const Added rest{cut(old.extent, to, old.extent.end()), old.epoch, old.in_place};
      found = added_.emplace(to, rest).first;
      break;
    }
  }
  return dropped;
}

void ExtentMap::hide(uint64_t first, uint64_t end, Replaced epoch) {
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

// Lets removals in [first, end) that wait for their replacement wait for `epoch` instead: the
// replacement is replaced in turn, or gone.
void ExtentMap::let_wait(uint64_t first, uint64_t end, Replaced epoch) {
  for (auto at = first_past(removed_, first, kEndOfHidden); at != removed_.end(); ++at) {
    if (at->first >= end) break;
    const Removed old = at->second;
    if (!old.epoch || old.epoch == epoch) continue;
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
  added_.emplace(at, Added{cut(old, at, old.end()), whole.epoch, whole.in_place});
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

std::vector<ExtentMap::Dropped> ExtentMap::overlay() const {
  std::vector<Dropped> runs;
  runs.reserve(added_.size());
  for (const auto& [first, added] : added_) {
    runs.push_back({{BlockNo{added.extent.block}, added.extent.length}, added.in_place});
  }
  return runs;
}

}  // namespace streamfs::meta
