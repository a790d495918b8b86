// Free inode slots: those freed by this mount, those found in older inode units, and fresh units.
// A mount scans nothing; units from before it are looked at a few at a time, as slots are needed.
//
// Thread safety: all methods, any thread; one leaf mutex (before the heap's).
// What a crash leaves: a slot whose first word is 0 is free.
#pragma once

#include <deque>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/heap.h"

namespace streamfs::meta {

class InodeSlots {
 public:
  // A slot nobody else can get. Dropped without keep(), it goes back.
  class Claim {
   public:
    Claim(InodeSlots& slots, InodeId id, Heap::Claim fresh_unit)
        : slots_(&slots), id_(id), unit_(std::move(fresh_unit)) {}
    Claim(Claim&& other) noexcept
        : slots_(std::exchange(other.slots_, nullptr)),
          id_(other.id_),
          unit_(std::move(other.unit_)) {}
    Claim& operator=(Claim&&) = delete;
    ~Claim();
    InodeId id() const { return id_; }
    uint32_t generation() const;  // for its new owner
    // Adds what makes the slot's unit an inode unit, if it is a fresh one.
    void put(Transaction& tx) const;
    void keep();  // its record has committed

   private:
    InodeSlots* slots_;
    InodeId id_;
    Heap::Claim unit_;  // none: the slot's unit is an inode unit already
  };

  // `used_hint`: inodes in use, as the superblock of a clean filesystem knows it.
  InodeSlots(Heap& heap, std::optional<uint64_t> used_hint);

  Result<Claim> take();  // ENOSPC
  void freed(InodeId id, TxId tx);
  uint64_t used() const;  // an upper bound until every unit has been looked at

 private:
  struct Freed {
    InodeId id;
    TxId tx;
  };
  std::optional<InodeId> pick(uint64_t units_to_scan) SFS_EXCLUDES(mutex_);
  void promote() SFS_REQUIRES(mutex_);
  void scan(uint64_t units) SFS_REQUIRES(mutex_);
  void scan_unit(uint64_t unit) SFS_REQUIRES(mutex_);
  void give_back(InodeId id);
  void born(InodeId id, bool fresh_unit);

  Heap& heap_;
  mutable Mutex mutex_;
  std::vector<InodeId> free_ SFS_GUARDED_BY(mutex_);            // taken from the back
  std::deque<Freed> freed_ SFS_GUARDED_BY(mutex_);              // not reusable yet
  std::unordered_set<InodeId> waiting_ SFS_GUARDED_BY(mutex_);  // those in freed_
  std::vector<bool> scanned_ SFS_GUARDED_BY(mutex_);            // by heap unit
  uint64_t cursor_ SFS_GUARDED_BY(mutex_) = 0;
  uint64_t used_ SFS_GUARDED_BY(mutex_) = 0;
  bool exact_ SFS_GUARDED_BY(mutex_);  // used_ came from a clean superblock
};

}  // namespace streamfs::meta
