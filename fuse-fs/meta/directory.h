// One directory's entries: slots in META, an index by name hash in memory.
//
// Slot number = ordinal of its unit × 63 + place in it; a slot never moves, so its number is the
// readdir cookie. Names over 48 bytes go on in the slots right after, in the same unit.
//
// A free slot's words but the first are written as a body (unlogged) when the watermark has passed
// the last record that freed a slot here, and as journal patches otherwise: an older record's body
// must stay as it was until that record is home.
//
// Thread safety: none of its own; the inode's mutex guards it.
// What a crash leaves: see the journal. The index is memory only, built at the first use.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/mended.h"

namespace streamfs::meta {

uint32_t name_hash(std::string_view name);
uint32_t slots_for(size_t name_length);

// An entry as its slots say. Errors: EIO when they are damaged.
struct DirEntry {
  InodeId id;
  uint32_t type = 0;   // S_IFMT bits
  uint32_t slots = 1;  // how many it takes
  std::string name;
};
// META offset of a slot by its place in its unit.
inline uint64_t slot_offset(uint64_t unit, uint32_t index) {
  return unit + sizeof(UnitHeader) + uint64_t{index} * sizeof(DirSlot);
}
// `index`: place of the first slot in its unit. ENOENT: the slot is free.
Result<DirEntry> decode_entry(const pmem::Region& region, uint64_t unit, uint32_t index,
                              Look look = Look::kFirst);
// The first word of the entry's first slot.
uint64_t entry_word(InodeId id, uint32_t type);

class Directory {
 public:
  // Errors: EIO for a broken chain. A damaged slot is kept out of the way and fails only lookups
  // of names it may hold.
  static Result<std::unique_ptr<Directory>> load(Heap& heap, InodeId id, const InodeImage& image);

  struct Found {
    uint32_t slot, count;  // the first of so many
    uint32_t hash;
    InodeId id;
    uint32_t type;
  };
  Result<std::optional<Found>> find(std::string_view name) const;
  bool empty() const { return entries_ == 0; }
  uint64_t entries() const { return entries_; }
  uint64_t bytes() const;  // about what the index takes in memory

  // ---- Changes: put_* adds to a transaction; the other follows its commit.
  struct Insertion {
    uint32_t slot = 0, count = 0, hash = 0;
    Heap::Claim unit;  // a fresh one, or none
  };
  // ENOSPC when a unit is needed and the heap is down to its reserve.
  Result<Insertion> put_insert(Transaction& tx, std::string_view name, InodeId id, uint32_t type,
                               InodeImage& next);
  void inserted(Insertion insertion);
  void put_remove(Transaction& tx, const Found& found) const;
  void removed(const Found& found, TxId tx);
  // The name leads to another inode; the index need not know.
  void put_replace(Transaction& tx, const Found& found, InodeId id, uint32_t type);

  // Reads up to `most` entries from a slot on, for the visit that will begin there, and returns
  // whom they lead to. They are kept until something changes here, or others are read ahead.
  std::vector<InodeId> read_ahead(uint64_t slot, size_t most);
  // Entries from a slot on; stops when visit returns false.
  void visit(uint64_t slot,
             const std::function<bool(uint32_t slot, const DirEntry& entry)>& visit) const;

 private:
  Directory(Heap& heap, InodeId id) : heap_(heap), id_(id) {}
  void load_unit(uint32_t ordinal);
  void load_damaged(uint32_t ordinal, uint32_t index);
  void set_free(uint32_t slot, uint32_t count);
  uint64_t offset(uint32_t slot) const;
  void changed() { ahead_ = {}; }
  std::optional<uint32_t> find_free(uint32_t count);
  // Returns whether a free slot's body may be stored unlogged: the watermark has passed the last
  // record that freed a slot here.
  bool bodies_allowed() const;

  Heap& heap_;
  InodeId id_;
  std::vector<uint64_t> units_;  // META offsets, by ordinal
  std::vector<uint64_t> free_;   // by ordinal: 1 bit a free slot, and whether it is in roomy_
  std::vector<uint32_t> roomy_;  // ordinals that may have free slots
  std::unordered_multimap<uint32_t, uint32_t> index_;  // name hash → slot
  uint64_t entries_ = 0;
  struct Ahead {
    struct Read {
      uint32_t slot;
      DirEntry entry;
    };
    uint64_t from = 0, to = 0;  // all entries of these slots
    std::vector<Read> entries;
  };
  Ahead ahead_;
  TxId last_free_;  // bodies may be written once the watermark has passed it
};

}  // namespace streamfs::meta
