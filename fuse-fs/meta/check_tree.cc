// The checks of the tree after the scan: names, parents, loops, orphans, link counts.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/check_walk.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr int kDeepest = 1000;  // names in a path that is reported
constexpr uint8_t kOnTheWay = 128;
constexpr uint64_t kOwnerMask = (uint64_t{1} << 56) - 1;

std::string inode_name(InodeId id) {
  return "inode " + std::to_string(id.value);
}

std::string name_at(const pmem::Region& region, uint64_t entry) {
  const uint64_t unit = round_down(entry, kUnitSize);
  const uint64_t index = (entry - unit - sizeof(UnitHeader)) / sizeof(DirSlot);
  const auto decoded = decode_entry(region, unit, static_cast<uint32_t>(index));
  return decoded ? decoded->name : "?";
}

}  // namespace

Result<void> CheckWalk::run() {
  SFS_TRY(scan());
  find_root();
  follow_strays();
  check_free_units();
  check_orphans();
  say_dangling();
  say_unsound();
  if (found_.blocks_conflict) check_owners();
  check_reached();
  SFS_TRY(check_inodes());
  find_chained();
  check_units();
  check_blocks();
  check_vstreams();
  check_counts();
  for (Findings::Said& said : found_.said) {
    std::string where = said.about.value == 0 ? "" : path(said.about);
    if (where.empty() && said.before.empty() && !said.after.starts_with('/')) where = "/";
    // `repaired` means "can be repaired" until the repair is done.
    report.problems.push_back({said.before + where + said.after, said.repairable, said.lost});
  }
  report.directories = found_.directories, report.files = found_.files;
  report.others = found_.others, report.blocks_in_use = found_.blocks;
  report.units_in_use = found_.units;
  repairs = std::move(found_.repairs);
  return {};
}

void CheckWalk::find_root() {
  const auto slot = find(root_);
  if (!slot || !S_ISDIR(word0(root_) & S_IFMT)) {
    blind("the root directory does not exist", InodeId{0}, {});
    return;
  }
  rooted_ = (inodes_.flags[*slot] & InodeTable::kSound) != 0;
}

void CheckWalk::say(std::string before, InodeId about, std::string after, bool repairable) {
  found_.said.push_back({std::move(before), about, std::move(after), repairable});
}

void CheckWalk::blind(std::string before, InodeId about, std::string after) {
  say(std::move(before), about, std::move(after));
  found_.blind = true;
}

// ---- Paths

InodeId CheckWalk::owner_of_entry(uint64_t entry) const {
  return InodeId{region_.load(round_down(entry, kUnitSize)) & kOwnerMask};
}

std::string CheckWalk::entry_path(uint64_t entry) const {
  return "/" + name_at(region_, entry);
}

std::string CheckWalk::path(InodeId id) const {
  std::string below;
  for (int depth = 0; depth < kDeepest; ++depth) {
    if (id == root_) return below;
    const auto slot = inodes_.slot(id);
    const uint8_t flags = slot ? inodes_.flags[*slot] : 0;
    if ((flags & InodeTable::kOrphan) != 0) return "orphan " + std::to_string(id.value) + below;
    if (!slot || (flags & InodeTable::kLost) != 0 || inodes_.entry[*slot] == 0)
      return "lost " + inode_name(id) + below;
    below.insert(0, entry_path(inodes_.entry[*slot]));
    id = owner_of_entry(inodes_.entry[*slot]);
  }
  return "..." + below;
}

// ---- Names

// Counts a name of an inode. Among several names, reports give the one with the smallest offset.
void CheckWalk::note_name(Findings& out, InodeId directory, uint64_t entry, size_t target) {
  const auto mode = static_cast<uint32_t>(word0(inodes_.id(target)) & S_IFMT);
  if (mode != (region_.load(entry) >> 56 & 0xf) << 12) {
    out.said.push_back(
        {{}, directory, entry_path(entry) + ": the entry says another type than the inode", false});
  }
  std::atomic_ref(inodes_.names[target]).fetch_add(1, std::memory_order_relaxed);
  const std::atomic_ref first(inodes_.entry[target]);
  uint64_t known = first.load(std::memory_order_relaxed);
  while ((known == 0 || entry < known) &&
         !first.compare_exchange_weak(known, entry, std::memory_order_relaxed)) {
  }
  if (!S_ISDIR(mode)) return;
  const size_t above = known_slot(directory);
  std::atomic_ref(inodes_.subdirectories[above]).fetch_add(1, std::memory_order_relaxed);
}

// Takes a unit that holds a sound inode for an inode unit, whatever the heap map says.
bool CheckWalk::adopt_unit(uint64_t unit, InodeId because) {
  if (claimed_[unit] != 0 || chained_.contains(unit) ||
      image_problem(load_image(region_, because), because) != nullptr)
    return false;
  say("heap unit " + std::to_string(unit) + " holds inodes, but the heap map says otherwise", true);
  found_.repairs.units[unit] = UnitKind::kInodes;
  const auto [named, end] = dangling_.equal_range(geometry_.unit_offset(unit) / kUnitSize);
  for (auto at = named; at != end; ++at) found_.strays.push_back(at->second);
  dangling_.erase(named, end);
  kind_[unit] = static_cast<uint8_t>(UnitKind::kInodes);
  inodes_.add_unit(unit);
  CheckScan(*this).scan_inodes(unit, found_);
  return true;
}

// Returns the slot of an inode that exists.
std::optional<size_t> CheckWalk::find(InodeId id) {
  if (id.value >= geometry_.meta_size() / kCellSize) return std::nullopt;
  const auto unit = geometry_.unit_of(inode_offset(id));
  if (!unit || word0(id) == 0) return std::nullopt;
  if (!inodes_.slot(id) && !adopt_unit(*unit, id)) return std::nullopt;
  return inodes_.slot(id);
}

// Units that are adopted on the way may add further strays.
void CheckWalk::follow_strays() {
  for (size_t i = 0; i < found_.strays.size(); ++i) {
    const Findings::Stray stray = found_.strays[i];
    if (const auto target = find(stray.target)) {
      note_name(found_, stray.directory, stray.entry, *target);
    } else {
      dangling_.emplace(inode_unit(stray.target), stray);
    }
  }
  found_.strays.clear();
}

void CheckWalk::say_dangling() {
  for (const auto& [unit, stray] : dangling_) {
    found_.repairs.dangling.insert(stray.target);
    blind({}, stray.directory,
          entry_path(stray.entry) + ": leads to " + inode_name(stray.target) +
              ", which does not exist");
  }
}

void CheckWalk::check_free_units() {
  for (const uint64_t unit : found_.not_empty) {
    if (kind_[unit] != static_cast<uint8_t>(UnitKind::kFree) || claimed_[unit] != 0) continue;
    adopt_unit(unit, InodeId{geometry_.unit_offset(unit) / kCellSize});
    follow_strays();
  }
}

void CheckWalk::say_unsound() {
  for (const InodeId id : found_.unsound) {
    blind({}, id, " (" + inode_name(id) + "): " + image_problem(load_image(region_, id), id));
  }
}

// Reports blocks with two owners. The scan's threads only found that there are such blocks; the
// owners are found here, by reading all extents again in order.
void CheckWalk::check_owners() {
  std::ranges::fill(owned_, 0);
  const CheckScan scan(*this);
  for (size_t slot = 0; slot < inodes_.size(); ++slot) {
    if ((inodes_.flags[slot] & InodeTable::kSound) == 0) continue;
    const InodeImage image = load_image(region_, inodes_.id(slot));
    if (!is_regular(image)) continue;
    scan.each_extent(image, [&](const Extent& extent) {
      uint64_t twice = 0, first = 0;
      for (uint64_t block = extent.block; block < extent.block + extent.length; ++block) {
        const uint64_t bit = uint64_t{1} << block % 64;
        if ((owned_[block / 64] & bit) != 0 && twice++ == 0) first = block;
        owned_[block / 64] |= bit;
      }
      if (twice == 0) return;
      say({}, inodes_.id(slot),
          twice == 1 ? ": block " + std::to_string(first) + " has a second owner"
                     : ": " + std::to_string(twice) + " blocks from " + std::to_string(first) +
                           " on have a second owner");
    });
  }
}

// ---- Orphans

void CheckWalk::check_orphans() {
  std::vector<uint64_t> units;
  CheckScan(*this).claim_orphans(geometry_.super().orphan_head, units, found_);
  for (const auto& [unit, kind] : found_.repairs.units) kind_[unit] = static_cast<uint8_t>(kind);
  if (units.empty()) say("there is no orphan list");
  for (const uint64_t unit : units) {
    for (uint64_t index = 0; index < kOrphansPerUnit; ++index)
      check_orphan(unit + sizeof(UnitHeader) + index * kWordSize);
  }
}

void CheckWalk::check_orphan(uint64_t word) {
  const InodeId id{region_.load(word)};
  if (id.value == 0) return;
  const auto slot = find(id);
  follow_strays();
  const bool known = slot && (id == root_ || inodes_.names[*slot] > 0 ||
                              (inodes_.flags[*slot] & InodeTable::kOrphan) != 0);
  if (slot && !known) {
    ++report.orphans;
    inodes_.flags[*slot] |= InodeTable::kOrphan;
    return;
  }
  say("the orphan list names " + inode_name(id) +
          (!slot ? ", which does not exist" : ", which has a name or is there twice"),
      true);
  found_.repairs.orphan_slots.push_back(word);
}

// ---- Loops

// Finds directories whose parents form a loop. If a directory of the loop has two names, only the
// second name is reported (check_directory()).
void CheckWalk::check_reached() {
  std::vector<size_t> way;
  for (size_t start = 0; start < inodes_.size(); ++start) {
    if ((inodes_.flags[start] & InodeTable::kDirectory) == 0) continue;
    way.clear();
    for (std::optional<size_t> at = start; at;
         at = inodes_.slot(owner_of_entry(inodes_.entry[*at]))) {
      uint8_t& flags = inodes_.flags[*at];
      if ((flags & kOnTheWay) != 0) {
        say_loop({std::ranges::find(way, *at), way.end()});
        break;
      }
      if ((flags & InodeTable::kReached) != 0 || inodes_.id(*at) == root_) break;
      if (inodes_.entry[*at] == 0) break;  // it has no name, which is reported elsewhere
      flags |= kOnTheWay;
      way.push_back(*at);
    }
    for (const size_t slot : way) {
      inodes_.flags[slot] =
          static_cast<uint8_t>((inodes_.flags[slot] & ~kOnTheWay) | InodeTable::kReached);
    }
  }
}

void CheckWalk::say_loop(const std::vector<size_t>& loop) {
  if (std::ranges::any_of(loop, [&](size_t slot) { return inodes_.names[slot] > 1; })) return;
  const size_t top = *std::ranges::min_element(loop, {}, [&](size_t at) { return inodes_.id(at); });
  const InodeId id = inodes_.id(top);
  found_.said.push_back({inode_name(id) + " is a directory that only directories below it lead to",
                         InodeId{0},
                         {},
                         rooted_,
                         id});
  inodes_.flags[top] |= InodeTable::kLost;
  if (!rooted_) return;
  found_.repairs.lost.push_back({id, inodes_.entry[top]});
  --inodes_.subdirectories[known_slot(owner_of_entry(inodes_.entry[top]))];
}

// ---- Each inode again, now that its names are known

Result<void> CheckWalk::check_inodes() {
  std::vector<Findings> chunks(div_round_up(inodes_.units.size(), kUnitsPerChunk));
  SFS_TRY(for_chunks(2, chunks.size(), [&](uint64_t chunk, CheckScan&) {
    const size_t slots = kUnitsPerChunk * kInodesPerUnit, first = chunk * slots;
    for (size_t slot = first; slot < std::min(first + slots, inodes_.size()); ++slot)
      check_inode(slot, chunks[chunk]);
  }));
  collect(chunks);
  return {};
}

void CheckWalk::check_inode(size_t slot, Findings& out) {
  const InodeId id = inodes_.id(slot);
  const uint64_t word = word0(id);
  if (word == 0) return;
  ++out.inodes;
  uint8_t& flags = inodes_.flags[slot];
  const bool sound = (flags & InodeTable::kSound) != 0;
  const bool orphan = (flags & InodeTable::kOrphan) != 0;
  const bool nameless = inodes_.names[slot] == 0 && !orphan && id != root_;
  const bool named_soon = nameless && sound && rooted_;
  if (nameless) {
    out.said.push_back({inode_name(id) + " has no name", InodeId{0}, {}, named_soon, id});
    if (named_soon) out.repairs.lost.push_back({id, 0});
    flags |= InodeTable::kLost;
  }
  if (!sound) return;
  const bool directory = (flags & InodeTable::kDirectory) != 0;
  uint32_t right =
      directory ? 2 + inodes_.subdirectories[slot] : inodes_.names[slot] + (named_soon ? 1 : 0);
  if (orphan) right = 0;
  if (word >> 32 != right) {
    if (!nameless) {
      out.said.push_back({inode_name(id) + " counts " + std::to_string(word >> 32) +
                              " links instead of " + std::to_string(right),
                          InodeId{0},
                          {},
                          true});
    }
    out.repairs.images[id].nlink = right;
  }
  if (directory) check_directory(slot, out);
}

void CheckWalk::check_directory(size_t slot, Findings& out) const {
  const InodeId id = inodes_.id(slot);
  const bool root = id == root_;
  if (inodes_.names[slot] > (root ? 0U : 1U)) {
    out.said.push_back({{}, id, ": a directory with a second name", false});
    return;
  }
  if ((inodes_.flags[slot] & (InodeTable::kOrphan | InodeTable::kLost)) != 0) return;
  const InodeId above = root ? root_ : owner_of_entry(inodes_.entry[slot]);
  const InodeId said{region_.load(inode_offset(id) + offsetof(InodeImage, parent))};
  if (said == above) return;
  out.said.push_back({{}, id, ": its parent is said to be " + inode_name(said), true});
  out.repairs.images[id].parent = above.value;
}

}  // namespace streamfs::meta
