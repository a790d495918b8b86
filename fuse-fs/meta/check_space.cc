// The checks of space after the scan: heap units, blocks, vStreams, the superblock's count.
#include <string.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "base/types.h"
#include "fuse-fs/meta/check_walk.h"
#include "fuse-fs/meta/record.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

// A block is right, allocated without an owner, owned but not allocated, or owned and marked both
// allocated and untrimmed.
enum BlockState : uint8_t { kRight = 0, kLeaked, kUnmarked, kBothStates };

constexpr uint64_t mask_below(uint64_t bit, uint64_t word) {
  if (bit <= word * 64) return 0;
  return bit - word * 64 >= 64 ? ~uint64_t{0} : (uint64_t{1} << (bit - word * 64)) - 1;
}

}  // namespace

void CheckWalk::find_chained() {
  for (uint64_t unit = 0; unit < geometry_.heap_units(); ++unit) {
    if (claimed_[unit] == 0) continue;
    if (inodes_.first_slot[unit] != 0 || chained_.contains(unit)) found_chained_.insert(unit);
  }
}

void CheckWalk::check_units() {
  for (uint64_t unit = 0; unit < geometry_.heap_units(); ++unit) {
    const auto kind = static_cast<UnitKind>(kind_[unit]);
    if (kind == UnitKind::kFree || kind == UnitKind::kDirty || kind == UnitKind::kInodes) continue;
    if (claimed_[unit] != 0) continue;
    say("heap unit " + std::to_string(unit) + " is marked used, but nothing uses it",
        !found_.blind);
    if (!found_.blind) found_.repairs.units[unit] = UnitKind::kDirty;
  }
  for (const uint64_t unit : found_.not_empty) {
    if (kind_[unit] != static_cast<uint8_t>(UnitKind::kFree) || claimed_[unit] != 0) continue;
    say("heap unit " + std::to_string(unit) + " is marked free, but holds something",
        !found_.blind);
    if (!found_.blind) found_.repairs.units[unit] = UnitKind::kDirty;
  }
}

// Compares 64 blocks at a time, and one by one where something is wrong.
void CheckWalk::check_blocks() {
  const uint64_t first_data = geometry_.super().first_data_block;
  int state = kRight;
  uint64_t since = 0, reserved_wrong = 0;
  for (uint64_t word = 0; word < owned_.size(); ++word) {
    const uint64_t marked = region_.load(geometry_.bitmap_word(RegionKind::kBlockBitmap, word));
    const uint64_t untrimmed = region_.load(geometry_.bitmap_word(RegionKind::kUntrimmed, word));
    const uint64_t owned = owned_[word];
    const uint64_t reserved = mask_below(first_data, word);
    const uint64_t valid = mask_below(geometry_.data_blocks(), word) & ~reserved;
    reserved_wrong += static_cast<uint64_t>(std::popcount(reserved & ~(marked & ~untrimmed)));
    const uint64_t leaked = marked & ~owned & valid, unmarked = owned & ~marked & valid;
    const uint64_t both = marked & untrimmed & owned & valid;
    if ((leaked | unmarked | both) == 0 && state == kRight) continue;
    for (uint64_t bit = 0; bit < 64; ++bit) {
      const auto is = [bit](uint64_t bits) { return (bits >> bit & 1) != 0; };
      const int now = is(leaked)     ? kLeaked
                      : is(unmarked) ? kUnmarked
                      : is(both)     ? kBothStates
                                     : kRight;
      if (now == state) continue;
      report_blocks(BlockNo{since}, word * 64 + bit - since, state);
      state = now;
      since = word * 64 + bit;
    }
  }
  report_blocks(BlockNo{since}, geometry_.data_blocks() - since, state);
  if (reserved_wrong > 0) {
    say(std::to_string(reserved_wrong) + " blocks below the first data block are not reserved");
  }
}

void CheckWalk::report_blocks(BlockNo first, uint64_t count, int state) {
  if (state == kRight || count == 0) return;
  const std::string which =
      "blocks " + std::to_string(first.value) + " to " + std::to_string(first.value + count - 1);
  if (state == kLeaked) {
    say(which + " are marked allocated, but no file has them", !found_.blind);
    if (!found_.blind) found_.repairs.runs.push_back({first, count, RunKind::kFree});
  } else {
    say(which + (state == kUnmarked ? " belong to a file, but are not marked allocated"
                                    : " are allocated and marked untrimmed as well"),
        true);
    found_.repairs.runs.push_back({first, count, RunKind::kAllocate});
  }
}

// Reports slots without a number, and slots that repeat a number or a name. Placement does not read
// a repeated one.
void CheckWalk::check_vstreams() {
  const uint64_t slots = geometry_.region_bytes(RegionKind::kVStreams) / sizeof(VStreamSlot);
  constexpr uint64_t kPerPage = kUnitSize / sizeof(VStreamSlot);
  std::set<uint16_t> numbers;
  std::set<std::string> names;
  uint64_t page = 0;
  for (uint64_t slot = 0; slot < slots; ++slot) {
    const uint64_t in_page = slot % kPerPage * sizeof(VStreamSlot);
    if (in_page == 0)
      page = geometry_.region_offset(RegionKind::kVStreams, slot / kPerPage * kUnitSize);
    const uint64_t head = region_.load(page + in_page);
    if (head == 0) continue;
    const auto number = static_cast<uint16_t>(head);
    const auto* text =
        reinterpret_cast<const char*>(region_.at(page + in_page + offsetof(VStreamSlot, name)));
    const std::string name(text, ::strnlen(text, sizeof(VStreamSlot::name)));
    const std::string what = "vStream slot " + std::to_string(slot);
    const bool twice = !numbers.insert(number).second;
    if (number != 0 && !twice && (name.empty() || names.insert(name).second)) continue;
    std::string wrong = " has the name of another, " + name;
    if (number == 0) wrong = " has no number";
    if (number != 0 && twice) wrong = " has the number of another, " + std::to_string(number);
    say(what + wrong, true);
    found_.repairs.vstreams.push_back(static_cast<uint32_t>(slot));
  }
}

void CheckWalk::check_counts() {
  report.inodes = found_.inodes;
  const Superblock& super = geometry_.super();
  if (super.clean == 0 || super.clean_used_inodes == 0) return;
  if (super.clean_used_inodes == found_.inodes) return;
  say("the superblock counts " + std::to_string(super.clean_used_inodes) + " inodes instead of " +
          std::to_string(found_.inodes),
      true);
  found_.repairs.superblocks = true;
}

}  // namespace streamfs::meta
