#include "fuse-fs/meta/block_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/block_allocator_impl.h"
#include "fuse-fs/meta/freed_runs.h"
#include "pmem/region.h"

namespace streamfs::meta {

// Calls visit(index of a word, blocks used, blocks waiting for a trim) for each word of a group.
template <typename Visit>
void BlockAllocator::Impl::read(uint64_t number, Visit&& visit) const {
  const uint64_t first = number * kGroupWords;
  const uint64_t end = std::min(first + kGroupWords, div_round_up(blocks(), 64));
  // A group's words are adjacent: they take 4 KiB, and segments are multiples of that.
  const uint64_t bitmap = geometry.bitmap_word(RegionKind::kBlockBitmap, first);
  const uint64_t untrimmed = geometry.bitmap_word(RegionKind::kUntrimmed, first);
  for (uint64_t index = first; index < end; ++index) {
    const uint64_t used = region.load(bitmap + (index - first) * kWordSize) | outside(index);
    visit(index, used, region.load(untrimmed + (index - first) * kWordSize) & ~used);
  }
}

void BlockAllocator::Impl::count(Group& group, uint64_t number) {
  if (group.counted) return;
  group.counted = true;
  read(number, [&](uint64_t, uint64_t used, uint64_t waiting) {
    group.free += static_cast<uint32_t>(std::popcount(~(used | waiting)));
    group.untrimmed += static_cast<uint32_t>(std::popcount(waiting));
  });
  free += group.free;
  pending += group.untrimmed;
}

// Counts some more groups. Returns false if every group was counted already.
bool BlockAllocator::Impl::count_some() {
  const uint64_t end = std::min(counted + kGroupsCounted, groups.size());
  if (counted == end) return false;
  for (; counted < end; ++counted) count(groups[counted], counted);
  return true;
}

BlockAllocator::Impl::Regions& BlockAllocator::Impl::open(uint64_t number) {
  Group& group = groups[number];
  if (group.regions) return *group.regions;
  count(group, number);
  group.regions = std::make_unique<Regions>();
  ++opened;
  Regions& made = *group.regions;
  made.bits.fill(~uint64_t{0});
  read(number, [&](uint64_t index, uint64_t used, uint64_t waiting) {
    const uint64_t at = index % kGroupWords;
    made.bits[at] = used | waiting;
    made.free[at / kRegionWords] =
        static_cast<uint16_t>(made.free[at / kRegionWords] + std::popcount(~made.bits[at]));
    if (waiting != 0) gone.found(index, waiting);
  });
  const uint64_t last = std::min(kGroupRegions, regions() - number * kGroupRegions);
  for (uint64_t at = 0; at < last; ++at) {
    ++class_count[static_cast<size_t>(std::bit_width(made.free[at]))];
  }
  return made;
}

// Frees the new blocks [first, end) of an open group, apart from those that the log has.
void BlockAllocator::Impl::open_up(uint64_t first, uint64_t end) {
  for (uint64_t at = first; at < end;) {
    const uint64_t here = std::min(end - at, 64 - at % 64);
    const uint64_t closed = outside(at / 64) >> at % 64;
    const auto taken = std::min(here, static_cast<uint64_t>(std::countr_one(closed)));
    const uint64_t rest = taken == 64 ? 0 : closed >> taken;
    const auto open = std::min(here - taken, static_cast<uint64_t>(std::countr_zero(rest)));
    if (open > 0) mark(at + taken, open, false);
    at += taken + open;
  }
}

bool BlockAllocator::Impl::is_free(uint64_t block) {
  return block < blocks() && (group(block).bits[block % kGroupBlocks / 64] >> block % 64 & 1) == 0;
}

// Returns the first free block of [from, end), or `end`. Both lie in one group.
uint64_t BlockAllocator::Impl::next_free(uint64_t from, uint64_t end) {
  const auto& bits = group(from).bits;
  while (from < end) {
    const uint64_t open = ~bits[from % kGroupBlocks / 64] >> from % 64;
    if (open != 0) return std::min(end, from + static_cast<uint64_t>(std::countr_zero(open)));
    from = round_down(from, 64) + 64;
  }
  return end;
}

// Returns the first block of [from, end) that is not free, or `end`. Both lie in one group.
uint64_t BlockAllocator::Impl::free_until(uint64_t from, uint64_t end) {
  const auto& bits = group(from).bits;
  while (from < end) {
    const uint64_t used = bits[from % kGroupBlocks / 64] >> from % 64;
    if (used != 0) return std::min(end, from + static_cast<uint64_t>(std::countr_zero(used)));
    from = round_down(from, 64) + 64;
  }
  return end;
}

// Counts only bits that change: a damaged bitmap may have called a block free that a file has.
void BlockAllocator::Impl::mark(uint64_t first, uint64_t count, bool used) {
  const uint64_t end = first + count;
  while (first < end) {
    uint64_t& bits = group(first).bits[first % kGroupBlocks / 64];
    const uint64_t stop = std::min(end, round_down(first, 64) + 64);
    const uint64_t width = stop - first;
    const uint64_t mask = (width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1) << first % 64;
    const uint64_t flips = used ? mask & ~bits : mask & bits;
    bits ^= flips;
    const auto changed = static_cast<uint64_t>(std::popcount(flips));
    const uint64_t at = first / kRegionBlocks;
    const uint64_t now = used ? free_in(at) - changed : free_in(at) + changed;
    count_changed(at, static_cast<uint16_t>(now));
    free = used ? free - changed : free + changed;
    first = stop;
  }
}

void BlockAllocator::Impl::count_changed(uint64_t at, uint16_t now) {
  uint16_t& known = free_in(at);
  --class_count[static_cast<size_t>(std::bit_width(known))];
  known = now;
  ++class_count[static_cast<size_t>(std::bit_width(now))];
}

void BlockAllocator::Impl::leave_region(uint16_t stream) {
  const auto found = cursors.find(stream);
  if (found == cursors.end()) return;
  owner_of(found->second.region) = kNobody;
  cursors.erase(found);
}

// Searches open groups only.
std::optional<uint64_t> BlockAllocator::Impl::find_region(uint64_t from, uint64_t least,
                                                          bool unowned) const {
  for (uint64_t i = 0; i < regions(); ++i) {
    const uint64_t at = (from + i) % regions();
    const Regions* known = groups[at / kGroupRegions].regions.get();
    if (known == nullptr) {
      i += std::min(round_down(at, kGroupRegions) + kGroupRegions, regions()) - at - 1;
      continue;
    }
    if (known->free[at % kGroupRegions] < least) continue;
    if (!unowned || known->owner[at % kGroupRegions] == kNobody) return at;
  }
  return std::nullopt;
}

// Opens some groups from a region on, up to one that has a wholly free region.
void BlockAllocator::Impl::look_ahead(uint64_t from) {
  const uint64_t most = std::min(opened + kGroupsAhead, groups.size());
  for (uint64_t i = 0; i < groups.size() && opened < most; ++i) {
    const Regions& found = open((from / kGroupRegions + i) % groups.size());
    for (uint64_t at = 0; at < kGroupRegions; ++at) {
      if (found.free[at] == kRegionBlocks && found.owner[at] == kNobody) return;
    }
  }
}

// Opens a further group that has free blocks. Returns false if there is none.
bool BlockAllocator::Impl::open_another() {
  for (uint64_t number = 0; number < groups.size(); ++number) {
    if (groups[number].regions) continue;
    count(groups[number], number);
    if (groups[number].free == 0) continue;
    open(number);
    return true;
  }
  return false;
}

// Claims an unowned region of the emptiest class that has one, looking onwards from the stream's
// old region.
bool BlockAllocator::Impl::claim_region(uint16_t stream) {
  const auto old = cursors.find(stream);
  const uint64_t from = old == cursors.end() ? 0 : (old->second.region + 1) % regions();
  leave_region(stream);
  look_ahead(from);
  for (uint64_t size_class = kClasses; size_class-- > 1;) {
    if (class_count[size_class] == 0) continue;
    const auto found = find_region(from, uint64_t{1} << (size_class - 1), true);
    if (!found) continue;
    owner_of(*found) = uint32_t{stream} + 1;
    cursors[stream] = {*found, *found * kRegionBlocks};
    return true;
  }
  return false;
}

// Takes a run from a free block on. The run goes over into the following regions as long as they
// are unowned and wholly free.
BlockRun BlockAllocator::Impl::take(uint64_t from, uint64_t wanted, uint16_t stream) {
  const uint64_t group_end = std::min(round_down(from, kGroupBlocks) + kGroupBlocks, blocks());
  const uint64_t limit = std::min(from + wanted, group_end);
  uint64_t end = std::min(limit, round_down(from, kRegionBlocks) + kRegionBlocks);
  end = free_until(from, end);
  while (end < limit && end % kRegionBlocks == 0 && owner_of(end / kRegionBlocks) == kNobody &&
         free_in(end / kRegionBlocks) == kRegionBlocks) {
    leave_region(stream);
    owner_of(end / kRegionBlocks) = uint32_t{stream} + 1;
    cursors[stream] = {end / kRegionBlocks, end};
    end = std::min(limit, end + kRegionBlocks);
  }
  mark(from, end - from, true);
  const auto own = cursors.find(stream);
  if (own != cursors.end() && (end - 1) / kRegionBlocks == own->second.region)
    own->second.next = end;
  return {BlockNo{from}, end - from};
}

std::optional<BlockRun> BlockAllocator::Impl::take_near(uint64_t near, uint64_t wanted,
                                                        uint16_t stream) {
  if (!geometry.valid_block(near) || !is_free(near)) return std::nullopt;
  const uint32_t owner = owner_of(near / kRegionBlocks);
  const bool own = owner == uint32_t{stream} + 1;
  const bool inside = owner == kNobody && near % kRegionBlocks != 0;
  if (!own && !inside) return std::nullopt;
  return take(near, wanted, stream);
}

std::optional<BlockRun> BlockAllocator::Impl::take_own(uint64_t wanted, uint16_t stream) {
  const auto found = cursors.find(stream);
  if (found == cursors.end() || free_in(found->second.region) == 0) return std::nullopt;
  const uint64_t base = found->second.region * kRegionBlocks;
  const uint64_t end = std::min(base + kRegionBlocks, blocks());
  uint64_t at = found->second.next >= end ? end : next_free(found->second.next, end);
  if (at == end) at = next_free(base, end);
  SFS_ASSERT(at < end);
  return take(at, wanted, stream);
}

// Takes blocks in any region, also in other streams'.
std::optional<BlockRun> BlockAllocator::Impl::take_any(uint64_t wanted, uint16_t stream) {
  auto found = find_region(0, 1, false);
  if (!found && open_another()) found = find_region(0, 1, false);
  if (!found) return std::nullopt;
  const uint64_t base = *found * kRegionBlocks;
  return take(next_free(base, std::min(base + kRegionBlocks, blocks())), wanted, stream);
}

BlockAllocator::BlockAllocator(const pmem::Region& region, const Geometry& geometry)
    : impl_(std::make_unique<Impl>(region, geometry)) {}

BlockAllocator::~BlockAllocator() = default;

Result<BlockRun> BlockAllocator::reserve(uint64_t wanted, PStreamId stream,
                                         std::optional<BlockNo> near) {
  SFS_ASSERT(wanted > 0);
  const MutexLock lock(impl_->mutex);
  if (near) {
    if (auto run = impl_->take_near(near->value, wanted, stream.value)) return *run;
  }
  if (auto run = impl_->take_own(wanted, stream.value)) return *run;
  if (impl_->claim_region(stream.value)) {
    if (auto run = impl_->take_own(wanted, stream.value)) return *run;
  }
  if (auto run = impl_->take_any(wanted, stream.value)) return *run;
  return Error{ENOSPC, "data blocks"};
}

std::optional<BlockRun> BlockAllocator::reserve_whole(uint64_t count) {
  const MutexLock lock(impl_->mutex);
  uint64_t start = 0, length = 0;
  for (uint64_t at = 0; at < impl_->blocks() && length < count;) {
    const uint64_t end = std::min(round_down(at, kGroupBlocks) + kGroupBlocks, impl_->blocks());
    const uint64_t first = impl_->next_free(at, end);
    const uint64_t stop = first < end ? impl_->free_until(first, end) : end;
    if (first != at) length = 0;
    if (length == 0) start = first;
    length += stop - first;
    at = stop;
  }
  if (length < count) return std::nullopt;
  impl_->mark(start, count, true);
  return BlockRun{BlockNo{start}, count};
}

// Only the last of the known groups can have room for more blocks.
void BlockAllocator::grow() {
  const MutexLock lock(impl_->mutex);
  const uint64_t before = impl_->blocks(), now = impl_->geometry.data_blocks();
  const uint64_t end = std::min(round_up(before, kGroupBlocks), now);
  const bool last_is_known = end > before && impl_->groups.back().counted;
  if (last_is_known) impl_->open(impl_->groups.size() - 1);
  impl_->known_blocks = now;
  impl_->groups.resize(div_round_up(now, kGroupBlocks));
  if (!last_is_known) return;
  const uint64_t regions = div_round_up(end, kRegionBlocks) - div_round_up(before, kRegionBlocks);
  impl_->class_count[0] += regions;  // nothing in them is free yet
  impl_->open_up(before, end);
}

void BlockAllocator::count_all() const {
  for (bool more = true; more;) {
    const MutexLock lock(impl_->mutex);
    more = impl_->count_some();
  }
}

uint64_t BlockAllocator::free_blocks() const {
  count_all();
  const MutexLock lock(impl_->mutex);
  return impl_->free;
}

uint64_t BlockAllocator::pending_blocks() const {
  count_all();
  const MutexLock lock(impl_->mutex);
  return impl_->pending;
}

}  // namespace streamfs::meta
