#include "tests/fuzz/damage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <span>

#include "base/checksum.h"
#include "base/types.h"
#include "fuse-fs/meta/directory.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/record.h"

namespace streamfs::fuzz {
namespace {

using meta::kCellSize;
using meta::kUnitSize;

template <typename T>
void store_object(pmem::Region& region, uint64_t offset, const T& object) {
  std::array<uint64_t, sizeof(T) / kWordSize> words{};
  std::memcpy(words.data(), &object, sizeof(T));
  region.store(offset, words);
}

void fix_super(pmem::Region& region, uint64_t offset) {
  meta::Superblock super;
  std::memcpy(&super, region.at(offset), sizeof(super));
  super.checksum = meta::superblock_checksum(super);
  store_object(region, offset, super);
}

uint32_t fixed(meta::ExtentSlot slot) {
  return meta::extent_checksum(slot);
}

void fix_inode(pmem::Region& region, uint64_t offset) {
  meta::InodeImage image = meta::load_image(region, InodeId{offset / kCellSize});
  if (image.mode == 0 && image.nlink == 0) return;
  for (size_t slot = 0; slot < meta::kInlineExtents; ++slot) {
    if ((image.flags & (meta::kInlineExtent0 << slot)) == 0) continue;
    auto extent = meta::inline_slot(image, slot);
    extent.checksum = fixed(extent);
    std::memcpy(&image.inline_area[slot * 4], &extent, sizeof(extent));
  }
  image.checksum = meta::inode_checksum(image);
  store_object(region, offset, image);
}

void fix_directory(pmem::Region& region, uint64_t unit) {
  for (uint32_t index = 0; index < meta::kDirSlotsPerUnit;) {
    const uint64_t at = meta::slot_offset(unit, index);
    meta::DirSlot slot;
    std::memcpy(&slot, region.at(at), sizeof(slot));
    const uint32_t slots = meta::slots_for(slot.name_length);
    const bool first = slot.inode != 0 && (slot.inode & meta::kContinuation) == 0;
    if (!first || slots > 5 || index + slots > meta::kDirSlotsPerUnit) {
      ++index;
      continue;
    }
    slot.checksum = 0;
    store_object(region, at, slot);
    slot.checksum = static_cast<uint16_t>(crc32c({region.at(at), slots * sizeof(slot)}));
    store_object(region, at, slot);
    index += slots;
  }
}

void fix_extents(pmem::Region& region, uint64_t unit) {
  for (uint64_t i = 0; i < meta::kExtentSlotsPerUnit; ++i) {
    const uint64_t at = unit + sizeof(meta::UnitHeader) + i * sizeof(meta::ExtentSlot);
    auto slot = meta::read_extent_slot(region, at);
    if (slot.head == 0) continue;
    slot.checksum = fixed(slot);
    store_object(region, at, slot);
  }
}

void fix_blob(pmem::Region& region, uint64_t unit) {
  auto header = meta::read_header(region, unit);
  const uint64_t length = std::min<uint64_t>(header.length, meta::kBlobBytesPerUnit);
  header.checksum = crc32c({region.at(unit + sizeof(header)), length});
  store_object(region, unit, header);
}

// The whole unit is: damage to one object of it may make another one of its neighbours.
void fix_unit(pmem::Region& region, const meta::Geometry& geometry, uint64_t number) {
  const uint64_t unit = geometry.unit_offset(number);
  switch (meta::read_unit_kind(region, geometry, number)) {
    case meta::UnitKind::kInodes:
      for (uint64_t i = 0; i < meta::kInodesPerUnit; ++i) fix_inode(region, unit + i * kCellSize);
      break;
    case meta::UnitKind::kDirectory:
      return fix_directory(region, unit);
    case meta::UnitKind::kExtents:
      return fix_extents(region, unit);
    case meta::UnitKind::kBlob:
      return fix_blob(region, unit);
    default:
      break;
  }
}

// The record that begins in this line, if its lengths make sense.
bool fix_record_at(pmem::Region& region, const meta::Geometry& geometry, uint64_t offset,
                   uint64_t end) {
  const auto* start = reinterpret_cast<const uint64_t*>(region.at(offset));
  const auto view = meta::RecordView::parse({start, (end - offset) / kWordSize});
  if (!view) return false;
  std::vector<uint64_t> words(view->words().begin(), view->words().end());
  auto header = view->header();
  header.body_checksum = view->body_checksum(region, geometry).value_or(0);
  std::memcpy(words.data(), &header, sizeof(header));
  header.checksum = meta::record_checksum(words, geometry.super().journal_seed);
  store_object(region, offset, header);
  return true;
}

// The record that holds this line begins in it or at most 32 KiB before it.
void fix_record(pmem::Region& region, const meta::Geometry& geometry, uint64_t line) {
  const meta::Segment& rings = geometry.super().regions[0].segments[0];
  const uint64_t most = meta::kMaxRecordWords * kWordSize;
  const uint64_t back = std::min(line - rings.offset, most);
  for (uint64_t at = 0; at <= back; at += kLineSize) {
    if (fix_record_at(region, geometry, line - at, rings.offset + rings.length)) return;
  }
}

template <typename T>
T load_object(const pmem::Region& region, uint64_t offset) {
  T object;
  std::memcpy(&object, region.at(offset), sizeof(object));
  return object;
}

void fix_expired(pmem::Region& region, uint64_t line, uint32_t seed) {
  auto slot = load_object<meta::ExpiredSlot>(region, line);
  const auto through = std::as_bytes(std::span(&slot.through, 1));
  slot.checksum = slot.through == 0 ? 0 : crc32c(through, seed) | uint64_t{1} << 32;
  store_object(region, line, slot);
}

// Fixes the entry of the intent log that holds this line, if the entries before it can be followed.
void fix_intent(pmem::Region& region, const meta::Geometry& geometry, uint64_t line) {
  const uint32_t seed = geometry.super().journal_seed;
  const meta::Segment& rings = geometry.super().regions[0].segments[0];
  const uint64_t segment = line - (line - rings.offset) % meta::kRingSize;
  uint64_t at = segment + 2 * kLineSize;
  if (line < at) return fix_expired(region, line, seed);
  while (at <= line) {
    auto entry = load_object<meta::IntentEntry>(region, at);
    const uint64_t length = static_cast<uint64_t>(std::popcount(entry.lines)) * kLineSize;
    const uint64_t next = at + kLineSize + length;
    if (next > segment + meta::kRingSize) return;
    if (next > line) {
      entry.checksum = 0;
      const uint32_t head = crc32c(std::as_bytes(std::span(&entry, 1)), seed);
      entry.checksum = crc32c({region.at(at + kLineSize), length}, head);
      return store_object(region, at, entry);
    }
    at = next;
  }
}

}  // namespace

std::vector<uint64_t> apply_damage(pmem::Region& region, const Image& image,
                                   std::span<const Item> items) {
  std::vector<uint64_t> changed;
  const auto store = [&](uint64_t offset, uint64_t value) {
    region.store_word(offset, value);
    changed.push_back(offset);
  };
  const meta::Geometry& geometry = image.geometry;
  const uint64_t cells = geometry.heap_units() * meta::kInodesPerUnit;
  const auto cell = [&](uint64_t number) {
    return geometry.region_offset(meta::RegionKind::kHeap, number % cells * kCellSize);
  };
  for (const Item& item : items) {
    const uint64_t live = image.live[item.where % image.live.size()];
    const uint64_t shift = uint64_t{item.argument} % 8 * 8;
    switch (static_cast<DamageKind>(item.kind % static_cast<uint8_t>(DamageKind::kCount))) {
      case DamageKind::kSetLive:
        store(live, item.value);
        break;
      case DamageKind::kFlipLive:
        store(live, region.load(live) ^ item.value);
        break;
      case DamageKind::kCopyLive:
        store(live, region.load(image.live[item.value % image.live.size()]));
        break;
      case DamageKind::kSetByte:
        store(live, (region.load(live) & ~(uint64_t{0xff} << shift)) | (item.value & 0xff)
                                                                           << shift);
        break;
      case DamageKind::kSetAny:
        store((item.argument * uint64_t{0x10000} + item.where * kWordSize) % region.size(),
              item.value);
        break;
      case DamageKind::kUnitKind: {
        const uint64_t at =
            geometry.region_offset(meta::RegionKind::kHeapMap, item.where % geometry.heap_units());
        const uint64_t bits = at % kWordSize * 8;
        const uint64_t word = round_down(at, kWordSize);
        store(word, (region.load(word) & ~(uint64_t{0xff} << bits)) | (item.value & 0xff) << bits);
        break;
      }
      case DamageKind::kSuper:
        for (const uint64_t copy : meta::kSuperOffset) {
          store(copy + item.where * kWordSize % sizeof(meta::Superblock), item.value);
        }
        break;
      default:
        for (uint64_t at = 0; at < kCellSize; at += kWordSize) {
          store(cell(item.where) + at, region.load(cell(item.value) + at));
        }
    }
  }
  return changed;
}

void fix_checksums(pmem::Region& region, const meta::Geometry& geometry,
                   std::span<const uint64_t> changed) {
  const meta::Segment& rings = geometry.super().regions[0].segments[0];
  const uint64_t intents = rings.offset + geometry.super().ring_count * meta::kRingSize;
  std::set<uint64_t> units, records, entries;
  for (const uint64_t offset : changed) {
    if (const auto unit = geometry.unit_of(offset)) units.insert(*unit);
    if (offset >= rings.offset && offset - rings.offset < rings.length) {
      (offset < intents ? records : entries).insert(round_down(offset, kLineSize));
    }
    for (const uint64_t copy : meta::kSuperOffset) {
      if (offset >= copy && offset - copy < sizeof(meta::Superblock)) fix_super(region, copy);
    }
  }
  for (const uint64_t unit : units) fix_unit(region, geometry, unit);
  for (const uint64_t record : records) fix_record(region, geometry, record);
  for (const uint64_t entry : entries) fix_intent(region, geometry, entry);
}

}  // namespace streamfs::fuzz
