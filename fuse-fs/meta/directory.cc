#include "fuse-fs/meta/directory.h"

#include <string.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"
#include "pmem/region.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kTypeShift = 56;
constexpr uint64_t kIdMask = (uint64_t{1} << kTypeShift) - 1;
constexpr uint32_t kMaxEntrySlots = 5;
constexpr uint64_t kAllFree = (uint64_t{1} << kDirSlotsPerUnit) - 1;
constexpr uint64_t kListed = uint64_t{1} << 63;  // beside a unit's free bits: it is in roomy_
constexpr size_t kSlotWords = sizeof(DirSlot) / kWordSize;

// An entry's slots as words, the inode word included.
using EntryWords = std::array<uint64_t, kMaxEntrySlots * kSlotWords>;

// The second word holds the checksum.
constexpr uint64_t kButChecksum = 0x0000'ffff'ffff'ffff;
static_assert(offsetof(DirSlot, checksum) == 14);

// Requires: the checksum in `words` is zero.
uint16_t entry_checksum(const EntryWords& words, uint32_t slots) {
  const auto all = std::span(words).first(slots * kSlotWords);
  return static_cast<uint16_t>(crc32c(std::as_bytes(all)));
}

void finish_checksum(EntryWords& words, uint32_t slots) {
  words[1] &= kButChecksum;
  words[1] |= uint64_t{entry_checksum(words, slots)} << 48;
}

EntryWords encode_entry(std::string_view name, InodeId id, uint32_t type) {
  EntryWords words{};
  DirSlot first{};
  first.inode = entry_word(id, type);
  first.name_hash = name_hash(name);
  first.name_length = static_cast<uint16_t>(name.size());
  name.copy(first.name, kDirSlotName);
  std::memcpy(words.data(), &first, sizeof(first));
  name.remove_prefix(std::min<size_t>(name.size(), kDirSlotName));
  for (uint32_t slot = 1; !name.empty(); ++slot) {
    words[slot * kSlotWords] = kContinuation | slot;
    const size_t part = std::min<size_t>(name.size(), kContinuationName);
    std::memcpy(&words[slot * kSlotWords + 1], name.data(), part);
    name.remove_prefix(part);
  }
  finish_checksum(words, slots_for(first.name_length));
  return words;
}

// Reads slots [first, slots) of an entry whose first slot is at `offset`.
void read_words(const pmem::Region& region, uint64_t offset, uint32_t first, uint32_t slots,
                EntryWords& words) {
  for (size_t i = first * kSlotWords; i < slots * kSlotWords; ++i) {
    words[i] = region.load(offset + i * kWordSize);
  }
}

DirSlot first_slot(const EntryWords& words) {
  DirSlot slot{};
  std::memcpy(&slot, words.data(), sizeof(slot));
  return slot;
}

std::string entry_name(const EntryWords& words, uint32_t length) {
  const auto* first = reinterpret_cast<const char*>(&words[2]);
  std::string name;
  name.reserve(length);
  name.append(first, std::min(length, kDirSlotName));
  for (uint32_t slot = 1; name.size() < length; ++slot) {
    const auto* more = reinterpret_cast<const char*>(&words[slot * kSlotWords + 1]);
    name.append(more, std::min<size_t>(length - name.size(), kContinuationName));
  }
  return name;
}

bool sane_name(std::string_view name) {
  if (name == "." || name == "..") return false;
  int bad = 0;  // in one pass that takes many bytes at once
  for (const char c : name) bad |= static_cast<int>(c == '/') | static_cast<int>(c == '\0');
  return bad == 0;
}

}  // namespace

uint64_t Directory::bytes() const {
  constexpr uint64_t kNodeBytes = 32;
  return sizeof(Directory) + entries_ * kNodeBytes + index_.bucket_count() * sizeof(void*) +
         (units_.capacity() + free_.capacity()) * sizeof(uint64_t) +
         ahead_.entries.capacity() * sizeof(Ahead::Read);
}

uint32_t name_hash(std::string_view name) {
  return crc32c(std::as_bytes(std::span(name)));
}

uint32_t slots_for(size_t name_length) {
  if (name_length <= kDirSlotName) return 1;
  return 1 + static_cast<uint32_t>(div_round_up(name_length - kDirSlotName, kContinuationName));
}

uint64_t entry_word(InodeId id, uint32_t type) {
  return id.value | uint64_t{type >> 12 & 0xf} << kTypeShift;
}

namespace {

Result<DirEntry> decode_copy(const pmem::Region& region, uint64_t unit, uint32_t index) {
  const uint64_t at = slot_offset(unit, index);
  if (region.load(at) == 0) return Error{ENOENT};  // most slots are free: read no more
  EntryWords words;                                // filled as far as the entry has slots
  read_words(region, at, 0, 1, words);
  const DirSlot slot = first_slot(words);
  const uint32_t slots = slots_for(slot.name_length);
  if ((slot.inode & kContinuation) != 0 || slot.name_length == 0 ||
      slot.name_length > kMaxNameLength || index + slots > kDirSlotsPerUnit) {
    return Error{EIO, "damaged directory slot"};
  }
  read_words(region, at, 1, slots, words);
  words[1] &= kButChecksum;
  if (entry_checksum(words, slots) != slot.checksum) return Error{EIO, "damaged directory slot"};
  DirEntry entry{InodeId{slot.inode & kIdMask},
                 static_cast<uint32_t>(slot.inode >> kTypeShift & 0xf) << 12, slots,
                 entry_name(words, slot.name_length)};
  if (!sane_name(entry.name)) return Error{EIO, "impossible name in a directory"};
  return entry;
}

}  // namespace

Result<DirEntry> decode_entry(const pmem::Region& region, uint64_t unit, uint32_t index,
                              Look look) {
  return read_mended(
      region, "a directory slot", slot_offset(unit, index), look,
      [&](const pmem::Region& copy) { return decode_copy(copy, unit, index); },
      [](const Result<DirEntry>& entry) {
        return (entry.ok() ? entry->slots : 1) * sizeof(DirSlot);
      });
}

Result<std::unique_ptr<Directory>> Directory::load(Heap& heap, InodeId id,
                                                   const InodeImage& image) {
  std::unique_ptr<Directory> directory(new Directory(heap, id));
  SFS_ASSIGN(directory->units_, heap.chain(image.chain, UnitKind::kDirectory, id));
  directory->free_.resize(directory->units_.size());
  for (uint32_t ordinal = 0; ordinal < directory->units_.size(); ++ordinal) {
    directory->load_unit(ordinal);
  }
  directory->last_free_ = heap.store().journal.last();
  return directory;
}

void Directory::load_unit(uint32_t ordinal) {
  const pmem::Region& region = heap_.store().region;
  const uint64_t unit = units_[ordinal];
  for (uint32_t index = 0; index < kDirSlotsPerUnit;) {
    const uint32_t slot = ordinal * kDirSlotsPerUnit + index;
    const Result<DirEntry> found = decode_entry(region, unit, index);
    if (found.ok()) {
      index_.emplace(name_hash(found->name), slot);
      ++entries_;
      index += found->slots;
    } else if (found.error().code == ENOENT) {
      set_free(slot, 1);
      ++index;
    } else {
      load_damaged(ordinal, index++);
    }
  }
}

// Indexes the slot by the name that it seems to have held, so that lookups of that name fail.
void Directory::load_damaged(uint32_t ordinal, uint32_t index) {
  EntryWords words{};
  read_words(heap_.store().region, slot_offset(units_[ordinal], index), 0, 1, words);
  const DirSlot slot = first_slot(words);
  const uint32_t number = ordinal * kDirSlotsPerUnit + index;
  ++entries_;
  index_.emplace(slot.name_hash, number);
  const size_t length = strnlen(slot.name, kDirSlotName);
  const uint32_t hash = name_hash({slot.name, std::min<size_t>(length, slot.name_length)});
  if (hash != slot.name_hash) index_.emplace(hash, number);
}

uint64_t Directory::offset(uint32_t slot) const {
  return slot_offset(units_[slot / kDirSlotsPerUnit], slot % kDirSlotsPerUnit);
}

Result<std::optional<Directory::Found>> Directory::find(std::string_view name) const {
  const uint32_t hash = name_hash(name);
  const auto [begin, end] = index_.equal_range(hash);
  bool damaged = false;
  for (auto at = begin; at != end; ++at) {
    const uint32_t slot = at->second;
    const auto entry = decode_entry(heap_.store().region, units_[slot / kDirSlotsPerUnit],
                                    slot % kDirSlotsPerUnit);
    if (!entry) {
      damaged = true;
    } else if (entry->name == name) {
      return std::optional(Found{slot, entry->slots, hash, entry->id, entry->type});
    }
  }
  if (damaged) return Error{EIO, "damaged directory slot"};
  return std::optional<Found>();
}

void Directory::set_free(uint32_t slot, uint32_t count) {
  const uint32_t ordinal = slot / kDirSlotsPerUnit;
  free_[ordinal] |= ((uint64_t{1} << count) - 1) << slot % kDirSlotsPerUnit;
  if ((free_[ordinal] & kListed) != 0) return;
  free_[ordinal] |= kListed;
  roomy_.push_back(ordinal);
}

// Tries a few units only, so that a long name does not search a directory full of single holes.
std::optional<uint32_t> Directory::find_free(uint32_t count) {
  while (!roomy_.empty() && free_[roomy_.back()] == kListed) {
    free_[roomy_.back()] = 0;
    roomy_.pop_back();
  }
  constexpr size_t kTries = 8;
  const size_t tries = std::min(kTries, roomy_.size());
  for (size_t i = 0; i < tries; ++i) {
    const uint32_t ordinal = roomy_[roomy_.size() - 1 - i];
    const uint64_t open = free_[ordinal] & kAllFree;
    uint64_t starts = open;
    for (uint32_t more = 1; more < count; ++more) starts &= open >> more;
    if (starts != 0) {
      return ordinal * kDirSlotsPerUnit + static_cast<uint32_t>(std::countr_zero(starts));
    }
  }
  return std::nullopt;
}

bool Directory::bodies_allowed() const {
  return heap_.store().journal.watermark() >= last_free_;
}

Result<Directory::Insertion> Directory::put_insert(Transaction& tx, std::string_view name,
                                                   InodeId id, uint32_t type, InodeImage& next) {
  Insertion insertion;
  insertion.count = slots_for(name.size());
  insertion.hash = name_hash(name);
  uint64_t at = 0;
  if (const auto slot = find_free(insertion.count)) {
    insertion.slot = *slot;
    at = offset(*slot);
  } else {
    SFS_ASSIGN(Heap::Claim unit, heap_.take(Heap::Purpose::kCreate));
    heap_.put_unit(tx, unit.offset(), UnitKind::kDirectory, id_, 0);
    if (units_.empty()) {
      next.chain = unit.offset();
    } else {
      tx.patch(units_.back() + offsetof(UnitHeader, next), unit.offset());
      next.size += kUnitSize;
    }
    insertion.slot = static_cast<uint32_t>(units_.size()) * kDirSlotsPerUnit;
    at = slot_offset(unit.offset(), 0);
    insertion.unit = std::move(unit);
  }
  const EntryWords words = encode_entry(name, id, type);
  for (uint32_t i = 0; i < insertion.count; ++i, at += sizeof(DirSlot)) {
    const auto slot = std::span(words).subspan(i * kSlotWords, kSlotWords);
    if (bodies_allowed()) {
      tx.body(at + kWordSize, slot.subspan(1));
      tx.patch(at, slot[0]);
    } else {
      tx.patch_words(at, slot);
    }
  }
  return insertion;
}

void Directory::inserted(Insertion insertion) {
  changed();
  if (insertion.unit) {
    insertion.unit.keep();
    units_.push_back(insertion.unit.offset());
    free_.push_back(kAllFree | kListed);
    roomy_.push_back(static_cast<uint32_t>(units_.size() - 1));
  }
  const uint64_t taken = ((uint64_t{1} << insertion.count) - 1)
                         << insertion.slot % kDirSlotsPerUnit;
  free_[insertion.slot / kDirSlotsPerUnit] &= ~taken;
  index_.emplace(insertion.hash, insertion.slot);
  ++entries_;
}

void Directory::put_remove(Transaction& tx, const Found& found) const {
  for (uint32_t i = 0; i < found.count; ++i) tx.patch(offset(found.slot + i), 0);
}

void Directory::removed(const Found& found, TxId tx) {
  changed();
  const auto [begin, end] = index_.equal_range(found.hash);
  const auto indexed =
      std::find_if(begin, end, [&](const auto& at) { return at.second == found.slot; });
  SFS_ASSERT(indexed != end);
  index_.erase(indexed);
  set_free(found.slot, found.count);
  --entries_;
  last_free_ = std::max(last_free_, tx);
}

void Directory::put_replace(Transaction& tx, const Found& found, InodeId id, uint32_t type) {
  changed();
  const uint64_t at = offset(found.slot);
  EntryWords words{};
  read_words(heap_.store().region, at, 0, found.count, words);
  words[0] = entry_word(id, type);
  finish_checksum(words, found.count);
  tx.patch(at, words[0]);
  tx.patch(at + kWordSize, words[1]);
}

std::vector<InodeId> Directory::read_ahead(uint64_t slot, size_t most) {
  Ahead next{.from = slot, .to = units_.size() * kDirSlotsPerUnit, .entries = {}};
  std::vector<InodeId> ids;
  next.entries.reserve(most);
  ids.reserve(most);
  visit(slot, [&](uint32_t at, const DirEntry& entry) {
    if (ids.size() == most) {
      next.to = at;
      return false;
    }
    next.entries.push_back({at, entry});
    ids.push_back(entry.id);
    return true;
  });
  ahead_ = std::move(next);
  return ids;
}

void Directory::visit(
    uint64_t slot, const std::function<bool(uint32_t slot, const DirEntry& entry)>& visit) const {
  if (slot == ahead_.from) {
    for (const auto& [at, entry] : ahead_.entries) {
      if (!visit(at, entry)) return;
    }
    slot = std::max(slot, ahead_.to);
  }
  const pmem::Region& region = heap_.store().region;
  while (slot < units_.size() * kDirSlotsPerUnit) {
    const uint64_t unit = units_[slot / kDirSlotsPerUnit];
    const auto index = static_cast<uint32_t>(slot % kDirSlotsPerUnit);
    const uint64_t at = slot_offset(unit, index);
    if (published(region, at) && (region.load(at) & kContinuation) == 0) {
      const Result<DirEntry> found = decode_entry(region, unit, index);
      if (found && !visit(static_cast<uint32_t>(slot), *found)) return;
    }
    ++slot;
  }
}

}  // namespace streamfs::meta
