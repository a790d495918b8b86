// The entries of a directory: slots in META, and an index by name hash in memory.
//
// The number of a slot is the ordinal of its unit × 63 + its place in the unit. A slot never moves,
// so readdir cookies are made from slot numbers. A name of more than 48 bytes continues in the
// slots that follow, in the same unit.
//
// A new entry's slots are written as bodies (unlogged, all words but the first) only if the
// watermark has passed the last record that freed a slot of this directory. Otherwise all words are
// journal patches, because the body of an older record must not change until that record is home.
//
// Thread safety: none; the inode's mutex guards it.
// After a crash: entries are as the journal leaves them. The index is memory only and is built at
// the first use.
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

// An entry, decoded from its slots.
struct DirEntry {
  InodeId id;
  uint32_t type = 0;   // S_IFMT bits
  uint32_t slots = 1;  // how many it takes
  std::string name;
};
// Returns the META offset of a slot, given its place in its unit.
inline uint64_t slot_offset(uint64_t unit, uint32_t index) {
  return unit + sizeof(UnitHeader) + uint64_t{index} * sizeof(DirSlot);
}
// Decodes the entry whose first slot has the place `index` in its unit.
// Errors: ENOENT, the slot is free; EIO, a slot is damaged.
Result<DirEntry> decode_entry(const pmem::Region& region, uint64_t unit, uint32_t index,
                              Look look = Look::kFirst);
// Returns the first word of the entry's first slot.
uint64_t entry_word(InodeId id, uint32_t type);

class Directory {
 public:
  // Errors: EIO, the chain is broken. A damaged slot is no error: it counts as an entry, is never
  // written, and fails only lookups of names that it may hold.
  static Result<std::unique_ptr<Directory>> load(Heap& heap, InodeId id, const InodeImage& image);

  struct Found {
    uint32_t slot, count;  // the first of so many
    uint32_t hash;
    InodeId id;
    uint32_t type;
  };
  // Errors: EIO, the name is not found and a damaged slot may hold it.
  Result<std::optional<Found>> find(std::string_view name) const;
  bool empty() const { return entries_ == 0; }
  uint64_t entries() const { return entries_; }
  uint64_t bytes() const;  // about what the index takes in memory

  // ---- Changes: put_*() adds to a transaction; inserted() and removed() follow its commit.
  // Nothing follows a failed commit: a dropped Insertion gives its unit back.
  struct Insertion {
    uint32_t slot = 0, count = 0, hash = 0;
    Heap::Claim unit;  // a fresh one, or none
  };
  // Changes the chain and size of `next` if the directory gets a unit. Requires: each Insertion is
  // inserted() or dropped before the next call, which would take the same slot.
  // Errors: ENOSPC, the entry needs a unit and the heap is down to its reserve.
  Result<Insertion> put_insert(Transaction& tx, std::string_view name, InodeId id, uint32_t type,
                               InodeImage& next);
  void inserted(Insertion insertion);
  void put_remove(Transaction& tx, const Found& found) const;
  void removed(const Found& found, TxId tx);
  // Makes the name lead to another inode. The index does not change.
  void put_replace(Transaction& tx, const Found& found, InodeId id, uint32_t type);

  // Reads up to `most` entries from a slot on, for the visit() that will begin there, and returns
  // their inodes. The entries are kept until the directory changes or the next read_ahead().
  std::vector<InodeId> read_ahead(uint64_t slot, size_t most);
  // Visits the entries from a slot on, until `visit` returns false.
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
  std::vector<uint64_t> free_;   // by ordinal: a bit for each free slot, and "is in roomy_"
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
