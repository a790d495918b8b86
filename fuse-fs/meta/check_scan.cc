// The part of a scan that a thread runs: it checks each inode and everything that it owns.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/types.h"
#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/blob/xattr.h"
#include "fuse-fs/meta/check_walk.h"
#include "pmem/region.h"

namespace streamfs::meta {

// ---- One unit, one inode

void CheckScan::say(std::string after, bool repairable) {
  out_->said.push_back({{}, id_, std::move(after), repairable});
}

void CheckScan::blind(std::string after) {
  say(std::move(after));
  out_->blind = damaged_ = true;
}

void CheckScan::scan_unit(uint64_t unit, Findings& out) {
  const auto kind = static_cast<UnitKind>(all_.kind_[unit]);
  if (all_.inodes_.first_slot[unit] != 0) scan_inodes(unit, out);
  if (kind != UnitKind::kFree) return;
  if (all_.region_.load(all_.geometry_.unit_offset(unit)) != 0) out.not_empty.push_back(unit);
}

void CheckScan::scan_inodes(uint64_t unit, Findings& out) {
  out_ = &out;
  const uint64_t first = all_.geometry_.unit_offset(unit) / kCellSize;
  for (uint64_t i = 0; i < kInodesPerUnit; ++i) {
    if (all_.word0(InodeId{first + i}) != 0) visit_inode(InodeId{first + i});
  }
}

void CheckScan::visit_inode(InodeId id) {
  id_ = id;
  damaged_ = false;
  const InodeImage image = load_image(all_.region_, id);
  if (image_problem(image, id) != nullptr) {
    out_->unsound.push_back(id);
    return;
  }
  uint8_t& flags = all_.inodes_.flags[all_.known_slot(id)];
  flags = InodeTable::kSound;
  check_fields(image);
  if (image.xattr != 0) visit_blob(image, image.xattr, false);
  if (image.inline_xattr_bytes != 0) {
    const auto bytes = std::as_bytes(inline_xattr_words(image)).first(image.inline_xattr_bytes);
    check_xattrs({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  if (is_directory(image)) {
    ++out_->directories;
    flags |= InodeTable::kDirectory;
    visit_directory(image);
  } else if (is_regular(image)) {
    ++out_->files;
    visit_file(image);
  } else {
    ++out_->others;
    if (is_symlink(image) && (image.flags & kInlineSymlink) == 0)
      visit_blob(image, image.symlink, true);
  }
}

// Reports flags, pointers and blocks that an inode of this type cannot have.
void CheckScan::check_fields(const InodeImage& image) {
  constexpr uint16_t kOfFiles = kInlineExtent0 | kInlineExtent1 | kTruncating | kExtending;
  if (!is_regular(image) && (image.flags & kOfFiles) != 0) say(": has flags it cannot have");
  const bool wrong_pointers = (image.chain != 0 && !is_regular(image) && !is_directory(image)) ||
                              (image.symlink != 0 && !is_symlink(image)) ||
                              (image.symlink != 0 && (image.flags & kInlineSymlink) != 0);
  if (wrong_pointers) blind(": points to what it cannot have");
  if (!is_regular(image) && block_count(image) != 0) say(": has blocks, but is no file");
}

// ---- Directories

void CheckScan::visit_directory(const InodeImage& image) {
  names_.clear();
  if (claim_chain(image.chain, UnitKind::kDirectory)) {
    const uint64_t size = chain_.empty() ? 0 : (chain_.size() - 1) * kUnitSize;
    if (image.size != size) {
      say(": says " + std::to_string(image.size) + " bytes instead of " + std::to_string(size),
          true);
      out_->repairs.images[id_].size = size;
    }
  }
  for (const uint64_t unit : chain_) {
    for (uint32_t index = 0; index < kDirSlotsPerUnit;) {
      const uint64_t at = slot_offset(unit, index);
      if (all_.region_.load(at) == 0) {
        ++index;
        continue;
      }
      const auto entry = decode_entry(all_.region_, unit, index);
      if (!entry) {
        out_->said.push_back(
            {"directory ", id_, "/: a damaged slot at offset " + std::to_string(at), false});
      } else {
        visit_entry(unit, index, *entry);
      }
      index += entry ? entry->slots : 1;
    }
  }
  check_twice();
}

void CheckScan::visit_entry(uint64_t unit, uint32_t index, const DirEntry& entry) {
  const uint64_t at = slot_offset(unit, index);
  const uint32_t hash = name_hash(entry.name);
  names_.push_back({hash, at});
  for (uint32_t i = 1; i < entry.slots; ++i) {
    if (all_.region_.load(slot_offset(unit, index + i)) != (kContinuation | i))
      say("/" + entry.name + ": its name is torn");
  }
  if (static_cast<uint32_t>(all_.region_.load(at + kWordSize)) != hash)
    say("/" + entry.name + ": has another name's hash");
  const auto target = all_.inodes_.slot(entry.id);
  if (!target || all_.word0(entry.id) == 0) {
    out_->strays.push_back({id_, at, entry.id});
  } else {
    all_.note_name(*out_, id_, at, *target);
  }
}

// Reports names that exist twice. Names are compared only if their hashes are equal.
void CheckScan::check_twice() {
  std::ranges::sort(names_, {}, [](const Name& name) { return std::pair(name.hash, name.entry); });
  const auto same_hash = [](const Name& a, const Name& b) { return a.hash == b.hash; };
  for (auto at = names_.begin();; ++at) {
    at = std::adjacent_find(at, names_.end(), same_hash);
    if (at == names_.end()) return;
    for (auto other = at + 1; other != names_.end() && other->hash == at->hash; ++other) {
      const std::string path = all_.entry_path(other->entry);
      if (path == all_.entry_path(at->entry)) say(path + ": the name exists twice");
    }
  }
}

// ---- Files

void CheckScan::visit_file(const InodeImage& image) {
  extents_.clear();
  for (size_t slot = 0; slot < kInlineExtents; ++slot) {
    if ((image.flags & (kInlineExtent0 << slot)) != 0) visit_extent(inline_slot(image, slot));
  }
  claim_chain(image.chain, UnitKind::kExtents);
  for (const uint64_t unit : chain_) {
    for (uint64_t i = 0; i < kExtentSlotsPerUnit; ++i) {
      const ExtentSlot slot =
          read_extent_slot(all_.region_, unit + sizeof(UnitHeader) + i * sizeof(ExtentSlot));
      if (slot.head != 0) visit_extent(slot);
    }
  }
  const uint64_t blocks = count_blocks();
  if (blocks == block_count(image)) return;
  say(": has " + std::to_string(blocks) + " blocks, but says " + std::to_string(block_count(image)),
      !damaged_);
  if (!damaged_) out_->repairs.images[id_].blocks = blocks;
}

void CheckScan::visit_extent(const ExtentSlot& slot) {
  const auto extent = decode_extent(slot, all_.geometry_);
  if (!extent) return blind(": " + extent.error().context);
  extents_.push_back(*extent);
}

// Marks the blocks of the file's extents as owned, and counts them. Leaves out extents that overlap
// an earlier one.
uint64_t CheckScan::count_blocks() {
  std::map<uint64_t, uint64_t> ranges;  // first → end; one extent needs none
  uint64_t blocks = 0;
  for (const Extent& extent : extents_) {
    if (extents_.size() > 1) {
      const auto after = ranges.lower_bound(extent.first);
      if ((after != ranges.end() && after->first < extent.end()) ||
          (after != ranges.begin() && std::prev(after)->second > extent.first)) {
        say(": two extents for file block " + std::to_string(extent.first));
        damaged_ = true;
        continue;
      }
      ranges.emplace_hint(after, extent.first, extent.end());
    }
    own_blocks(extent);
    blocks += extent.length;
  }
  return blocks;
}

void CheckScan::own_blocks(const Extent& extent) {
  const uint64_t end = extent.block + extent.length;
  for (uint64_t block = extent.block; block < end;) {
    const uint64_t stop = std::min(end, round_down(block, 64) + 64);
    const uint64_t width = stop - block;
    const uint64_t mask = (width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1) << block % 64;
    const std::atomic_ref word(all_.owned_[block / 64]);
    out_->blocks_conflict |= (word.fetch_or(mask, std::memory_order_relaxed) & mask) != 0;
    block = stop;
  }
  out_->blocks += extent.length;
}

void CheckScan::each_extent(const InodeImage& image,
                            const std::function<void(const Extent&)>& visit) const {
  const auto decode = [&](const ExtentSlot& slot) {
    const auto extent = decode_extent(slot, all_.geometry_);
    if (extent) visit(*extent);
  };
  for (size_t slot = 0; slot < kInlineExtents; ++slot) {
    if ((image.flags & (kInlineExtent0 << slot)) != 0) decode(inline_slot(image, slot));
  }
  uint64_t left = all_.geometry_.heap_units();
  for (uint64_t unit = image.chain; unit != 0 && left > 0; --left) {
    if (!all_.geometry_.unit_of(unit) || unit % kUnitSize != 0) return;
    const UnitHeader header = read_header(all_.region_, unit);
    if (header.owner != unit_owner(InodeId{image.self}, UnitKind::kExtents)) return;
    for (uint64_t i = 0; i < kExtentSlotsPerUnit; ++i) {
      const ExtentSlot slot =
          read_extent_slot(all_.region_, unit + sizeof(UnitHeader) + i * sizeof(ExtentSlot));
      if (slot.head != 0) decode(slot);
    }
    unit = header.next;
  }
}

// ---- Blobs

void CheckScan::visit_blob(const InodeImage& image, uint64_t first, bool symlink) {
  const std::string what = symlink ? ": its target " : ": its extended attributes ";
  claim_chain(first, UnitKind::kBlob);
  std::string bytes;
  for (const uint64_t unit : chain_) {
    const UnitHeader header = read_header(all_.region_, unit);
    const uint64_t length = std::min<uint64_t>(header.length, kBlobBytesPerUnit);
    const std::span payload(all_.region_.at(unit + sizeof(UnitHeader)), length);
    if (header.length != length || crc32c(payload) != header.checksum) {
      return say(what + "are damaged");
    }
    bytes.append(reinterpret_cast<const char*>(payload.data()), length);
  }
  if (!symlink) return check_xattrs(bytes);
  if (bytes.size() != image.size) say(what + "makes no sense");
}

// Attributes must be in order and each there once, or reader and writer would not agree.
void CheckScan::check_xattrs(std::string_view bytes) {
  const auto all = decode_xattrs(bytes);
  if (!all || encode_xattrs(*all) != bytes || bytes.size() > kMaxXattrBytes)
    return say(": its extended attributes make no sense");
  for (const std::string_view key : {kAccessAclKey, kDefaultAclKey}) {
    const auto found = all->find(key);
    if (found != all->end() && !decode_acl(found->second))
      say(": its access control list makes no sense");
  }
}

// ---- Chains

// Claims the units of a chain and collects them in chain_. Returns false if the chain breaks off.
bool CheckScan::claim_chain(uint64_t first, UnitKind kind) {
  chain_.clear();
  for (uint64_t at = first; at != 0; at = read_header(all_.region_, at).next) {
    if (!claim_unit(at, kind)) return false;
    chain_.push_back(at);
  }
  return true;
}

// No other object can claim a unit whose header names this one, so threads do not meet at a unit.
bool CheckScan::claim_unit(uint64_t offset, UnitKind kind) {
  const auto what = [&] { return ": its heap unit at offset " + std::to_string(offset); };
  const auto unit = all_.geometry_.unit_of(offset);
  if (!unit || all_.geometry_.unit_offset(*unit) != offset) {
    blind(what() + " does not exist");
    return false;
  }
  if (read_header(all_.region_, offset).owner != unit_owner(id_, kind)) {
    blind(what() + " belongs to something else");
    return false;
  }
  if (all_.claimed_[*unit] != 0) {
    say(what() + " is in two chains");
    damaged_ = true;
    return false;
  }
  all_.claimed_[*unit] = static_cast<uint8_t>(kind);
  ++out_->units;
  if (all_.kind_[*unit] == static_cast<uint8_t>(kind)) return true;
  say(what() + " has another kind in the heap map", true);
  out_->repairs.units[*unit] = kind;
  return true;
}

void CheckScan::claim_orphans(uint64_t head, std::vector<uint64_t>& units, Findings& out) {
  out_ = &out;
  id_ = InodeId{0};
  const size_t before = out.said.size();
  claim_chain(head, UnitKind::kOrphans);
  units = chain_;
  for (size_t i = before; i < out.said.size(); ++i) out.said[i].before = "the orphan list";
}

}  // namespace streamfs::meta
