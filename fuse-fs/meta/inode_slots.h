// Allocates inode slots: slots freed by this mount, free slots of older inode units, and slots of
// fresh units. A mount scans nothing. Older units are scanned a few at a time as slots are needed,
// and always before one of their slots changes. A unit whose last inode goes returns to the heap,
// unless too few free slots would be left or some of the unit's slots are in a hand.
//
// There are 16 *hands*, shared by thread number. A hand holds the free slots of one unit, and a
// thread takes slots from its hand. The inodes that one thread makes therefore lie together, and
// tables that are keyed by an inode's unit seldom make two threads share a cache line. If no slot
// and no unit is left, a thread takes from other hands.
//
// Thread safety: any thread may call any method. Lock order: a hand's mutex, `mutex_`, the heap's.
// After a crash: a slot whose first word is 0 is free.
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
  // Holds a slot that no one else can take. The slot goes back unless keep() is called.
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
    // If the slot's unit is a fresh one, adds the change that makes it an inode unit.
    void put(Transaction& tx) const;
    void keep();  // its record has committed

   private:
    InodeSlots* slots_;
    InodeId id_;
    Heap::Claim unit_;  // none: the slot's unit is an inode unit already
  };

  // The unit of a slot about to be freed, if the unit is freed with it. No one can take a slot of
  // the unit meanwhile. The unit stays unless keep() is called.
  class Emptied {
   public:
    Emptied() = default;
    Emptied(InodeSlots& slots, uint64_t unit) : slots_(&slots), unit_(unit) {}
    Emptied(Emptied&& other) noexcept
        : slots_(std::exchange(other.slots_, nullptr)), unit_(other.unit_) {}
    Emptied& operator=(Emptied&&) = delete;
    ~Emptied();
    explicit operator bool() const { return slots_ != nullptr; }
    void put(Transaction& tx) const;  // adds the change that frees the unit, if there is one
    void keep(TxId tx);               // the record has committed

   private:
    InodeSlots* slots_ = nullptr;
    uint64_t unit_ = 0;
  };

  // `used_hint`: the number of inodes in use, which the superblock of a clean filesystem has.
  InodeSlots(Heap& heap, std::optional<uint64_t> used_hint);

  // May checkpoint the journal, as Heap::take() does. Errors: ENOSPC.
  Result<Claim> take();
  // To free an inode: call emptied_by() before its record and put() what it returns into the
  // record. After the commit call keep() if it returned a unit, else freed(), and never both.
  Emptied emptied_by(InodeId id);
  void freed(InodeId id, TxId tx);  // the slot is reusable once the watermark has passed `tx`
  void grow(uint64_t units);        // call it before Heap::grow(), with the number of units to come
  // Returns the number of inodes in use; after a crash an upper bound, until all units are scanned.
  uint64_t used();
  // Scans some more units. Returns false when used() is exact.
  bool look_on();
  // Returns used() if it is exact. Scans nothing.
  std::optional<uint64_t> exactly_used();

 private:
  struct Freed {
    InodeId id;
    TxId tx;
  };
  static_assert(kInodesPerUnit == 16);
  struct Unit {
    uint16_t free = 0;         // bit: a free slot that is in no hand
    uint16_t waiting = 0;      // bit: a slot in freed_
    bool scanned : 1 = false;  // `free` is complete
    bool listed : 1 = false;   // in roomy_
    bool leaving : 1 = false;  // an Emptied has it: its slots cannot be taken
  };
  static constexpr uint64_t kGroup = 4096;  // units
  using Group = std::array<Unit, kGroup>;
  Unit& unit(uint64_t number) SFS_REQUIRES(mutex_);
  Unit& unit_of(InodeId id) SFS_REQUIRES(mutex_);
  bool scanned(uint64_t number) const SFS_REQUIRES(mutex_);
  // The slots of one unit that a thread takes from.
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
  // Slots that wait for the watermark, and some whose unit has been freed meanwhile.
  std::deque<Freed> freed_ SFS_GUARDED_BY(mutex_);
  uint64_t free_ SFS_GUARDED_BY(mutex_) = 0, waiting_ SFS_GUARDED_BY(mutex_) = 0;  // bits set
  uint64_t cursor_ SFS_GUARDED_BY(mutex_) = 0;
  const std::optional<uint64_t> used_at_open_;  // as a clean superblock knows it
  uint64_t found_ SFS_GUARDED_BY(mutex_) = 0;   // free slots of units from before this mount
};

}  // namespace streamfs::meta
