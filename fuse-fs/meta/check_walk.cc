#include "fuse-fs/meta/check_walk.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

std::string inode_name(InodeId id) {
  return "inode " + std::to_string(id.value);
}

bool is_used(const pmem::Region& region, InodeId id) {
  return region.load(inode_offset(id)) != 0;
}

}  // namespace

CheckWalk::CheckWalk(const pmem::Region& region, const Geometry& geometry)
    : region_(region),
      geometry_(geometry),
      claimed_(geometry.heap_units()),
      owned_(geometry.data_blocks()) {}

void CheckWalk::run() {
  const InodeId root{geometry_.super().root_inode};
  if (!exists(root) || !is_directory(load_image(region_, root))) {
    blinding_problem("the root directory does not exist");
  } else {
    rooted_ = image_problem(load_image(region_, root), root) == nullptr;
    walk_tree({root, root, ""});
  }
  check_orphans();
  // A lost tree may lead to inodes in units that the heap map hides.
  for (auto lost = unseen(); !lost.empty(); lost = unseen()) find_lost(std::move(lost));
  check_links();
  check_units();
  check_blocks();
}

void CheckWalk::problem(const std::string& text, bool repairable) {
  // `repaired` says "can be" until the repair has been done.
  report.problems.push_back({text, repairable});
}

void CheckWalk::blinding_problem(const std::string& text) {
  problem(text);
  blind_ = true;
}

// A sound inode outside an inode unit is believed, not the heap map.
bool CheckWalk::exists(InodeId id) {
  if (id.value >= geometry_.meta_size() / kCellSize) return false;
  const auto unit = geometry_.unit_of(inode_offset(id));
  if (!unit || !is_used(region_, id)) return false;
  if (kind(*unit) == UnitKind::kInodes) return true;
  if (claimed_[*unit] != 0 || image_problem(load_image(region_, id), id) != nullptr) return false;
  problem("heap unit " + std::to_string(*unit) + " holds inodes, but the heap map says otherwise",
          true);
  repairs.units[*unit] = UnitKind::kInodes;
  return true;
}

void CheckWalk::walk_tree(Visit from) {
  stack_.push_back(std::move(from));
  while (!stack_.empty()) {
    const Visit next = std::move(stack_.back());
    stack_.pop_back();
    visit_inode(next);
  }
}

// Called once an inode: the caller has counted the name that led here.
void CheckWalk::visit_inode(const Visit& visit) {
  Seen& seen = seen_[visit.id];
  const InodeImage image = load_image(region_, visit.id);
  seen.nlink = image.nlink;
  seen.directory = is_directory(image);
  const std::string path = visit.path.empty() ? "/" : visit.path;
  if (const char* wrong = image_problem(image, visit.id)) {
    blinding_problem(path + " (" + inode_name(visit.id) + "): " + wrong);
    return;
  }
  visit_blob(path, image, image.xattr, false);
  const auto inline_xattrs =
      std::as_bytes(inline_xattr_words(image)).first(image.inline_xattr_bytes);
  check_xattrs(path, {reinterpret_cast<const char*>(inline_xattrs.data()), inline_xattrs.size()});
  if (is_directory(image)) {
    ++report.directories;
    if (visit.parent.value != 0 && image.parent != visit.parent.value) {
      problem(path + ": its parent is said to be " + inode_name(InodeId{image.parent}));
    }
    visit_directory(visit, image);
  } else if (is_regular(image)) {
    ++report.files;
    visit_file(path, image);
  } else {
    ++report.others;
    if (is_symlink(image) && (image.flags & kInlineSymlink) == 0) {
      visit_blob(path, image, image.symlink, true);
    }
  }
}

void CheckWalk::visit_directory(const Visit& visit, const InodeImage& image) {
  names_.clear();
  for (const uint64_t unit : claim_chain(visit.path, image.chain, UnitKind::kDirectory, visit.id)) {
    for (uint32_t index = 0; index < kDirSlotsPerUnit;) {
      const uint64_t at = slot_offset(unit, index);
      if (region_.load(at) == 0) {
        ++index;
        continue;
      }
      const auto entry = decode_entry(region_, unit, index);
      if (entry) {
        visit_entry(visit, unit, index, *entry);
        index += entry->slots;
      } else {
        problem("directory " + visit.path + "/: a damaged slot at offset " + std::to_string(at));
        ++index;
      }
    }
  }
}

void CheckWalk::visit_entry(const Visit& visit, uint64_t unit, uint32_t index,
                            const DirEntry& entry) {
  const std::string path = visit.path + "/" + entry.name;
  if (!names_.insert(entry.name).second) problem(path + ": the name exists twice");
  if (entry.slots > 1) {
    for (uint32_t i = 1; i < entry.slots; ++i) {
      const uint64_t at = unit + sizeof(UnitHeader) + uint64_t{index + i} * sizeof(DirSlot);
      if (region_.load(at) != (kContinuation | i)) problem(path + ": its name is torn");
    }
  }
  if (!exists(entry.id)) {
    repairs.dangling.insert(entry.id);
    blinding_problem(path + ": leads to " + inode_name(entry.id) + ", which does not exist");
    return;
  }
  const uint32_t mode = load_image(region_, entry.id).mode;
  if ((mode & S_IFMT) != entry.type) problem(path + ": the entry says another type than the inode");
  if (S_ISDIR(mode)) ++seen_[visit.id].subdirectories;
  const auto [found, first] = seen_.try_emplace(entry.id);
  ++found->second.names;
  if (first) {
    stack_.push_back({entry.id, visit.id, path});
  } else if (S_ISDIR(mode)) {
    problem(path + ": a directory with a second name");
  }
}

void CheckWalk::visit_file(const std::string& path, const InodeImage& image) {
  std::map<uint64_t, uint64_t> ranges;  // first → end, file blocks
  for (size_t slot = 0; slot < kInlineExtents; ++slot) {
    if ((image.flags & (kInlineExtent0 << slot)) == 0) continue;
    visit_extent(path, inline_slot(image, slot), ranges);
  }
  for (const uint64_t unit :
       claim_chain(path, image.chain, UnitKind::kExtents, InodeId{image.self})) {
    for (uint64_t i = 0; i < kExtentSlotsPerUnit; ++i) {
      const ExtentSlot slot =
          read_extent_slot(region_, unit + sizeof(UnitHeader) + i * sizeof(ExtentSlot));
      if (slot.head != 0) visit_extent(path, slot, ranges);
    }
  }
  uint64_t blocks = 0;
  for (const auto& [first, end] : ranges) blocks += end - first;
  if (blocks != block_count(image)) {
    problem(path + ": has " + std::to_string(blocks) + " blocks, but says " +
            std::to_string(block_count(image)));
  }
}

void CheckWalk::visit_extent(const std::string& path, const ExtentSlot& slot,
                             std::map<uint64_t, uint64_t>& ranges) {
  const auto extent = decode_extent(slot, geometry_);
  if (!extent) {
    blinding_problem(path + ": " + extent.error().context);
    return;
  }
  const auto after = ranges.lower_bound(extent->first);
  if ((after != ranges.end() && after->first < extent->end()) ||
      (after != ranges.begin() && std::prev(after)->second > extent->first)) {
    problem(path + ": two extents for file block " + std::to_string(extent->first));
    return;
  }
  ranges.emplace_hint(after, extent->first, extent->end());
  own_blocks(path, *extent);
}

void CheckWalk::own_blocks(const std::string& path, const Extent& extent) {
  for (uint64_t block = extent.block; block < extent.block + extent.length; ++block) {
    if (owned_[block]) problem(path + ": block " + std::to_string(block) + " has a second owner");
    owned_[block] = true;
  }
  report.blocks_in_use += extent.length;
}

void CheckWalk::visit_blob(const std::string& path, const InodeImage& image, uint64_t first,
                           bool symlink) {
  const std::string what = symlink ? ": its target " : ": its extended attributes ";
  std::string bytes;
  for (const uint64_t unit : claim_chain(path, first, UnitKind::kBlob, InodeId{image.self})) {
    const UnitHeader header = read_header(region_, unit);
    const uint64_t length = std::min<uint64_t>(header.length, kBlobBytesPerUnit);
    const std::span payload(region_.at(unit + sizeof(UnitHeader)), length);
    if (header.length != length || crc32c(payload) != header.checksum) {
      problem(path + what + "are damaged");
      return;
    }
    bytes.append(reinterpret_cast<const char*>(payload.data()), length);
  }
  if (!symlink) return check_xattrs(path, bytes);
  if (bytes.size() != image.size) problem(path + what + "makes no sense");
}

void CheckWalk::check_xattrs(const std::string& path, std::string_view bytes) {
  const auto all = decode_xattrs(bytes);
  if (!all) return problem(path + ": its extended attributes make no sense");
  for (const std::string_view key : {kAccessAclKey, kDefaultAclKey}) {
    const auto found = all->find(key);
    if (found != all->end() && !decode_acl(found->second)) {
      problem(path + ": its access control list makes no sense");
    }
  }
}

std::vector<uint64_t> CheckWalk::claim_chain(const std::string& path, uint64_t first, UnitKind kind,
                                             InodeId owner) {
  std::vector<uint64_t> units;
  for (uint64_t at = first; at != 0; at = read_header(region_, at).next) {
    if (!claim_unit(path, at, kind, owner)) break;
    units.push_back(at);
  }
  return units;
}

bool CheckWalk::claim_unit(const std::string& path, uint64_t offset, UnitKind kind, InodeId owner) {
  const std::string what = path + ": its heap unit at offset " + std::to_string(offset);
  const auto unit = geometry_.unit_of(offset);
  if (!unit || geometry_.unit_offset(*unit) != offset) {
    blinding_problem(what + " does not exist");
    return false;
  }
  if (read_header(region_, offset).owner != unit_owner(owner, kind)) {
    blinding_problem(what + " belongs to something else");
    return false;
  }
  if (claimed_[*unit] != 0) {
    problem(what + " is in two chains");
    return false;
  }
  claimed_[*unit] = static_cast<uint8_t>(kind);
  ++report.units_in_use;
  if (this->kind(*unit) == kind) return true;
  problem(what + " has another kind in the heap map", true);
  repairs.units[*unit] = kind;
  return true;
}

void CheckWalk::check_orphans() {
  const uint64_t head = geometry_.super().orphan_head;
  const auto units = claim_chain("the orphan list", head, UnitKind::kOrphans, InodeId{0});
  if (units.empty()) problem("there is no orphan list");
  for (const uint64_t unit : units) {
    for (uint64_t index = 0; index < kOrphansPerUnit; ++index) {
      const uint64_t slot = unit + sizeof(UnitHeader) + index * kWordSize;
      const InodeId id{region_.load(slot)};
      if (id.value == 0) continue;
      const bool used = exists(id);
      const auto [found, first] = seen_.try_emplace(id);
      if (!used || !first) {
        problem("the orphan list names " + inode_name(id) +
                    (!used ? ", which does not exist" : ", which has a name or is there twice"),
                true);
        repairs.orphan_slots.push_back(slot);
        if (!used) seen_.erase(found);
        continue;
      }
      ++report.orphans;
      found->second.orphan = true;
      walk_tree({id, InodeId{0}, "orphan " + std::to_string(id.value)});
    }
  }
}

std::vector<InodeId> CheckWalk::unseen() const {
  std::vector<InodeId> lost;
  for (uint64_t unit = 0; unit < geometry_.heap_units(); ++unit) {
    if (kind(unit) != UnitKind::kInodes) continue;
    for (uint64_t index = 0; index < kInodesPerUnit; ++index) {
      const InodeId id{geometry_.unit_offset(unit) / kCellSize + index};
      if (is_used(region_, id) && !seen_.contains(id)) lost.push_back(id);
    }
  }
  return lost;
}

// Inodes that nothing leads to. Of a lost tree only its top is named again.
void CheckWalk::find_lost(std::vector<InodeId> lost) {
  const std::unordered_set<InodeId> all(lost.begin(), lost.end());
  const auto below_another = [&](InodeId id) {
    const InodeImage image = load_image(region_, id);
    return !is_directory(image) ||
           (image.parent != id.value && all.contains(InodeId{image.parent}));
  };
  const auto is_sound = [&](InodeId id) {
    return image_problem(load_image(region_, id), id) == nullptr;
  };
  // Sound ones first: what they lead to may show that others are no inodes at all.
  std::ranges::sort(lost, {},
                    [&](InodeId id) { return std::tuple(!is_sound(id), below_another(id), id); });
  for (const InodeId id : lost) {
    if (seen_.contains(id)) continue;  // met below another lost directory
    if (kind(*geometry_.unit_of(inode_offset(id))) != UnitKind::kInodes) continue;
    const bool sound = is_sound(id);
    problem(inode_name(id) + " has no name", sound && rooted_);
    Seen& seen = seen_[id];
    if (sound && rooted_) {
      ++seen.names;
      repairs.lost.push_back(id);
    }
    walk_tree({id, InodeId{0}, "lost " + inode_name(id)});
  }
}

void CheckWalk::check_links() {
  const std::unordered_set<InodeId> lost(repairs.lost.begin(), repairs.lost.end());
  for (const auto& [id, seen] : seen_) {
    uint32_t right = seen.directory ? 2 + seen.subdirectories : seen.names;
    if (seen.orphan) right = 0;
    if (!is_used(region_, id) || image_problem(load_image(region_, id), id) != nullptr) continue;
    if (seen.nlink == right) continue;
    if (!lost.contains(id)) {
      problem(inode_name(id) + " counts " + std::to_string(seen.nlink) + " links instead of " +
                  std::to_string(right),
              true);
    }
    repairs.links[id] = right;
  }
}

void CheckWalk::check_units() {
  for (uint64_t unit = 0; unit < geometry_.heap_units(); ++unit) {
    const UnitKind kind = this->kind(unit);
    if (repairs.units.contains(unit)) continue;
    const bool nobodys =
        kind == UnitKind::kFree || kind == UnitKind::kDirty || kind == UnitKind::kInodes;
    if (nobodys || claimed_[unit] != 0) continue;
    problem("heap unit " + std::to_string(unit) + " is marked used, but nothing uses it", !blind_);
    if (!blind_) repairs.units[unit] = UnitKind::kDirty;
  }
}

namespace {

// What is wrong with a block, and what puts it right.
enum BlockState : uint8_t { kRight = 0, kLeaked, kUnmarked, kBothStates };

}  // namespace

void CheckWalk::check_blocks() {
  const uint64_t first_data = geometry_.super().first_data_block;
  int state = kRight;
  uint64_t since = 0, reserved_wrong = 0;
  uint64_t marked = 0, untrimmed = 0;
  for (uint64_t block = 0; block < geometry_.data_blocks(); ++block) {
    if (block % 64 == 0) {
      marked = region_.load(geometry_.bitmap_word(RegionKind::kBlockBitmap, block / 64));
      untrimmed = region_.load(geometry_.bitmap_word(RegionKind::kUntrimmed, block / 64));
    }
    const bool is_marked = (marked >> block % 64 & 1) != 0;
    const bool is_untrimmed = (untrimmed >> block % 64 & 1) != 0;
    if (block < first_data) {
      reserved_wrong += is_marked && !is_untrimmed ? 0 : 1;
      continue;
    }
    int now = kRight;
    if (is_marked && !owned_[block]) now = kLeaked;
    if (!is_marked && owned_[block]) now = kUnmarked;
    if (is_marked && is_untrimmed && owned_[block]) now = kBothStates;
    if (now == state) continue;
    report_blocks(BlockNo{since}, block - since, state);
    state = now;
    since = block;
  }
  report_blocks(BlockNo{since}, geometry_.data_blocks() - since, state);
  if (reserved_wrong > 0) {
    problem(std::to_string(reserved_wrong) + " blocks below the first data block are not reserved");
  }
}

void CheckWalk::report_blocks(BlockNo first, uint64_t count, int state) {
  if (state == kRight || count == 0) return;
  const std::string which =
      "blocks " + std::to_string(first.value) + " to " + std::to_string(first.value + count - 1);
  if (state == kLeaked) {
    problem(which + " are marked allocated, but no file has them", !blind_);
    if (!blind_) repairs.runs.push_back({first, count, RunKind::kFree});
  } else {
    problem(which + (state == kUnmarked ? " belong to a file, but are not marked allocated"
                                        : " are allocated and marked untrimmed as well"),
            true);
    repairs.runs.push_back({first, count, RunKind::kAllocate});
  }
}

}  // namespace streamfs::meta
