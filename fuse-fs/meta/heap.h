// Allocates the heap's 4 KiB units, and reads chains of them.
//
//   kFree ──take──► claimed ──record commits──► an object's ──record commits──► kDirty
//     ▲                └─ claim dropped: kFree or kDirty as before                │
//     └───────────── take, once the watermark has passed the freeing record ◄─────┘
//
// A claimed unit reads as zeroes, whatever a crash or a dead object left in it. take() reads the
// unit and, if it is not all zeroes, clears it with a fence of its own, before any record can point
// there.
//
// Opening reads nothing. A group of the heap map is read at its first use: when one of its units is
// wanted, or by put_kind() before one of its units changes. The counts therefore begin with the
// state at open. Callers that need the number of units left (a create, which leaves the reserve;
// statfs) count groups until the answer is certain.
//
// Thread safety: any thread may call any method; one leaf mutex. take() may checkpoint the journal
// (not under the mutex), so the caller must not be inside Journal::commit() or hold a Stopped.
// After a crash: the heap map in META says which units are free; claims leave nothing.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/mended.h"
#include "fuse-fs/meta/store.h"

namespace streamfs::meta {

// Returns how many units of a heap of this size are kept for Heap::Purpose::kMust.
uint64_t heap_reserve(uint64_t units);
UnitHeader read_header(const pmem::Region& region, uint64_t unit_offset);
// Returns the header's first word.
constexpr uint64_t unit_owner(InodeId owner, UnitKind kind) {
  return owner.value | uint64_t{static_cast<uint8_t>(kind)} << 56;
}
UnitKind read_unit_kind(const pmem::Region& region, const Geometry& geometry, uint64_t unit);
void store_unit_kind(pmem::Region& region, const Geometry& geometry, uint64_t unit, UnitKind kind);
void put_unit_kind(Transaction& tx, const Geometry& geometry, uint64_t unit, UnitKind kind);

class Heap {
 public:
  // kCreate leaves the reserve alone. kMust may use it, so that unlink, truncate and the commit of
  // a finished write succeed.
  enum class Purpose : uint8_t { kCreate, kMust };

  // Holds a unit that no one else can take, or none. The unit goes back unless keep() is called.
  class Claim {
   public:
    Claim() = default;
    Claim(Heap& heap, uint64_t offset) : heap_(&heap), offset_(offset) {}
    Claim(Claim&& other) noexcept
        : heap_(std::exchange(other.heap_, nullptr)), offset_(other.offset_) {}
    Claim& operator=(Claim&& other) noexcept {
      std::swap(heap_, other.heap_);
      std::swap(offset_, other.offset_);
      return *this;
    }
    ~Claim() {
      if (heap_ != nullptr) heap_->give_back(offset_);
    }
    explicit operator bool() const { return offset_ != 0; }
    uint64_t offset() const { return offset_; }
    void keep() { heap_ = nullptr; }  // its record has committed

   private:
    Heap* heap_ = nullptr;
    uint64_t offset_ = 0;
  };

  static constexpr uint64_t kGroupUnits = 32768;  // 128 MiB

  explicit Heap(const Store& store);
  void open_reserve();  // lets kCreate use it too, for a repair that names lost inodes

  const Store& store() const { return store_; }
  // Skips a unit that holds a published object although the map calls it free: fsck may mend that.
  // Errors: ENOSPC, nothing is left, or for kCreate nothing but the reserve.
  Result<Claim> take(Purpose purpose);
  // Adds to `tx` that the unit becomes `kind`, with this owner and next unit.
  void put_unit(Transaction& tx, uint64_t offset, UnitKind kind, InodeId owner, uint64_t next);
  void put_kind(Transaction& tx, uint64_t offset, UnitKind kind);
  // Says that record `tx` made the unit kDirty. The unit is taken again once the watermark has
  // passed `tx`.
  void freed(uint64_t offset, TxId tx);

  UnitKind kind(uint64_t unit) const;
  uint64_t unit_at(uint64_t offset) const;  // asserts that it lies in the heap
  // Returns whether a unit of this kind and owner begins at `offset`.
  bool is_unit(uint64_t offset, UnitKind kind, InodeId owner, Look look = Look::kFirst) const;
  // Returns the offsets of a chain's units in order. Errors: EIO, a link leads astray.
  Result<std::vector<uint64_t>> chain(uint64_t first, UnitKind kind, InodeId owner,
                                      Look look = Look::kFirst) const;
  // Returns whether the slot of this id lies in an inode unit.
  bool is_inode_slot(InodeId id) const;

  void grow();  // adds the new units of the extended geometry, which are free and all zeroes

  uint64_t total() const { return store_.geometry.heap_units(); }
  // The next two read the whole map once, for an exact answer.
  uint64_t available();  // units that are free, dirty or waiting for the watermark; the reserve too
  uint64_t inode_units_at_open();
  bool scarce();       // no more than the reserve is left
  bool nearly_full();  // no more than a tenth is left, or than the reserve and 32 units

 private:
  // The units of a group that may be taken. Without bits they are only counted.
  struct Pool {
    uint32_t units = 0;
    uint32_t word = 0;  // the word of `bits` to look at first
    std::vector<uint64_t> bits;
  };
  struct Group {
    Pool free, dirty;
    bool counted = false;
  };
  struct Waiting {
    uint64_t unit;
    TxId tx;
  };
  void read(uint64_t group, bool keep_bits) SFS_REQUIRES(mutex_);
  void count(uint64_t group) SFS_REQUIRES(mutex_);
  void open_group(uint64_t group) SFS_REQUIRES(mutex_);
  void count_all() SFS_REQUIRES(mutex_);
  uint64_t known() const SFS_REQUIRES(mutex_) { return free_ + dirty_ + waiting_.size(); }
  bool more_than(uint64_t units) SFS_REQUIRES(mutex_);
  std::optional<uint64_t> pick(Purpose purpose) SFS_EXCLUDES(mutex_);
  std::optional<uint64_t> pick_free() SFS_REQUIRES(mutex_);
  std::optional<uint64_t> pick_from(Pool Group::* pool) SFS_REQUIRES(mutex_);
  void add(uint64_t unit, Pool Group::* pool) SFS_REQUIRES(mutex_);
  void promote() SFS_REQUIRES(mutex_);
  void clear(uint64_t offset) const;
  bool copy_has_unit(const pmem::Region& copy, uint64_t offset, UnitKind kind, InodeId owner) const;
  void give_back(uint64_t offset);

  Store store_;
  mutable Mutex mutex_;                          // leaf
  uint64_t units_ SFS_GUARDED_BY(mutex_);        // covered by groups_
  uint64_t reserve_ SFS_GUARDED_BY(mutex_) = 0;  // units
  std::vector<Group> groups_ SFS_GUARDED_BY(mutex_);
  uint64_t counted_ SFS_GUARDED_BY(mutex_) = 0;         // all groups below it are counted
  uint64_t free_ SFS_GUARDED_BY(mutex_) = 0;            // in counted groups
  uint64_t dirty_ SFS_GUARDED_BY(mutex_) = 0;           // the same
  uint64_t inode_units_ SFS_GUARDED_BY(mutex_) = 0;     // the same, at open
  std::deque<Waiting> waiting_ SFS_GUARDED_BY(mutex_);  // for the watermark
  uint64_t cursor_ SFS_GUARDED_BY(mutex_) = 0;          // group to look at first
};

}  // namespace streamfs::meta
