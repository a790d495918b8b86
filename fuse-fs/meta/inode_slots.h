// Free inode slots: those freed by this mount, those found in older inode units, and fresh units.
// A mount scans nothing; units from before it are looked at a few at a time, as slots are needed,
// and always before one of their slots changes. A unit whose last inode goes returns to the heap,
// unless that would leave too few slots, or some are in a thread's hand.
//
// Each thread takes slots from a unit of its own while there are units for that. So what one thread
// makes lies together, and where inodes are found again by their units, threads that work apart
// seldom have a cache line in common.
//
// Thread safety: all methods, any thread; a hand's mutex, then one of them all, then the heap's.
// What a crash leaves: a slot whose first word is 0 is free.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread_counters.h"
#include "base/types.h"
#include "fuse-fs/meta/heap.h"

namespace streamfs::meta {

class InodeSlots {
 public:
  // A slot nobody else can get. Dropped without keep(), it goes back.
  class Claim {
   public:
    Claim(InodeSlots& slots, InodeId id, Heap::Claim fresh_unit);
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

  // The unit of a slot about to be freed, if it goes with it. Nobody gets a slot of it meanwhile;
  // dropped without keep(), it stays.
  class Emptied {
   public:
    Emptied() = default;
    Emptied(InodeSlots& slots, uint64_t unit) : slots_(&slots), unit_(unit) {}
    Emptied(Emptied&& other) noexcept
        : slots_(std::exchange(other.slots_, nullptr)), unit_(other.unit_) {}
    Emptied& operator=(Emptied&&) = delete;
    ~Emptied();
    explicit operator bool() const { return slots_ != nullptr; }
    void put(Transaction& tx) const;  // adds what frees the unit, if there is one
    void keep(TxId tx);               // the record has committed

   private:
    InodeSlots* slots_ = nullptr;
    uint64_t unit_ = 0;
  };

  // `used_hint`: inodes in use, as the superblock of a clean filesystem knows it.
  InodeSlots(Heap& heap, std::optional<uint64_t> used_hint);

  Result<Claim> take();  // ENOSPC
  Emptied emptied_by(InodeId id);
  void freed(InodeId id, TxId tx);
  void grow(uint64_t units);  // the heap is about to have so many
  uint64_t used();            // after a cut an upper bound, until every unit has been looked at
  // Looks at some units nobody has needed yet. False: used() is exact.
  bool look_on();
  std::optional<uint64_t> exactly_used();

 private:
  struct Freed {
    InodeId id;
    TxId tx;
  };
  static_assert(kInodesPerUnit == 16);
  struct Unit {
    uint16_t free = 0;         // bit: a slot that can be had, and is in no hand
    uint16_t waiting = 0;      // bit: a slot in freed_
    bool scanned : 1 = false;  // free says all
    bool listed : 1 = false;   // in roomy_
    bool leaving : 1 = false;  // Emptied: its slots cannot be had
  };
  static constexpr uint64_t kGroup = 4096;  // units
  using Group = std::array<Unit, kGroup>;
  Unit& unit(uint64_t number) SFS_REQUIRES(mutex_);
  Unit& unit_of(InodeId id) SFS_REQUIRES(mutex_);
  bool scanned(uint64_t number) const SFS_REQUIRES(mutex_);
  // What a thread takes its slots from.
  struct alignas(kLineSize) Hand {
    Mutex mutex;  // before mutex_
    uint16_t free SFS_GUARDED_BY(mutex) = 0;
    uint64_t unit_offset SFS_GUARDED_BY(mutex) = 0;
  };
  enum : uint8_t { kBorn, kGone, kCounters };
  Hand& my_hand();
  std::optional<InodeId> pick(Hand& hand, uint64_t units_to_scan) SFS_EXCLUDES(mutex_);
  void fill(Hand& hand, uint64_t units_to_scan) SFS_REQUIRES(hand.mutex) SFS_EXCLUDES(mutex_);
  bool fill_from_roomy(Hand& hand) SFS_REQUIRES(hand.mutex, mutex_);
  void add_free(uint64_t unit, uint16_t slots) SFS_REQUIRES(mutex_);
  void promote() SFS_REQUIRES(mutex_);
  void scan(uint64_t units, uint64_t enough) SFS_REQUIRES(mutex_);
  void scan_unit(uint64_t unit) SFS_REQUIRES(mutex_);
  void give_back(InodeId id);
  void claimed_fresh(InodeId id, bool claimed);
  void born(InodeId id, bool fresh_unit);
  void stay(uint64_t unit);
  void leave(uint64_t unit, TxId tx);

  Heap& heap_;
  std::array<Hand, 16> hands_;
  ThreadCounters<kCounters> counters_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Group>> units_ SFS_GUARDED_BY(mutex_);  // by heap unit; none: new
  std::vector<uint64_t> roomy_ SFS_GUARDED_BY(mutex_);  // units that may have free slots
  std::deque<Freed> freed_ SFS_GUARDED_BY(mutex_);      // not reusable yet, or left since
  uint64_t free_ SFS_GUARDED_BY(mutex_) = 0, waiting_ SFS_GUARDED_BY(mutex_) = 0;  // bits set
  uint64_t cursor_ SFS_GUARDED_BY(mutex_) = 0;
  const std::optional<uint64_t> used_at_open_;  // as a clean superblock knows it
  uint64_t found_ SFS_GUARDED_BY(mutex_) = 0;   // free slots of units from before this mount
};

}  // namespace streamfs::meta
