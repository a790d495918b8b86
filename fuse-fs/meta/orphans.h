// Keeps the list of inodes that exist without a name. They were removed while open, were created
// without a name, or are being freed. In META the list is a chain of kOrphans units with a word for
// each slot; 0 = free slot. load() reads the first unit. A further unit is read if no known
// slot is free, if put_remove() does not find its inode in the units read so far, and by
// leftovers().
//
// In memory the list has parts, and an inode belongs to the part of its heap unit. Each part takes
// free slots a cache line of META at a time. Threads whose inodes lie apart (InodeSlots) therefore
// seldom contend here.
//
// Thread safety: any thread may call any method. The chain's mutex is taken before those of the
// parts, which are leaves, and before those of the heap and the journal.
// After a crash: the list is as after the last record that took an inode's last name or gave it its
// first. The next mount frees the inodes on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/inode.h"

namespace streamfs::meta {

class Orphans {
 public:
  static constexpr size_t kParts = 16;

  // Holds a free slot for one inode, or none. The slot goes back unless keep() is called.
  class Claim {
   public:
    Claim() = default;
    Claim(Orphans& orphans, InodeId id, uint64_t slot) : orphans_(&orphans), id_(id), slot_(slot) {}
    Claim(Claim&& other) noexcept
        : orphans_(std::exchange(other.orphans_, nullptr)), id_(other.id_), slot_(other.slot_) {}
    Claim& operator=(Claim&& other) noexcept {
      std::swap(orphans_, other.orphans_);
      std::swap(id_, other.id_);
      std::swap(slot_, other.slot_);
      return *this;
    }
    ~Claim();
    void put(Transaction& tx) const { tx.patch(slot_, id_.value); }
    void keep() { orphans_ = nullptr; }  // its record has committed

   private:
    Orphans* orphans_ = nullptr;
    InodeId id_;
    uint64_t slot_ = 0;
  };

  explicit Orphans(Heap& heap) : heap_(heap) {}
  Result<void> load(uint64_t head);  // EIO: broken chain

  // Returns a free slot for the inode, and extends the chain by a record of its own if there is
  // none. Errors: ENOSPC; EIO, the chain is broken.
  Result<Claim> claim(InodeId id);
  // Take an inode off the list: put_remove() adds that to a record, and removed() follows its
  // commit. put_remove() adds nothing if the inode is not found, also because the chain is broken.
  void put_remove(Transaction& tx, InodeId id);
  void removed(InodeId id);
  // Returns the inodes that were on the list when its units were read and still are. Reads all
  // units, up to the first broken one.
  std::vector<InodeId> leftovers();

 private:
  struct alignas(kLineSize) Part {
    Mutex mutex;  // leaf
    std::vector<uint64_t> free SFS_GUARDED_BY(mutex);
    std::unordered_map<InodeId, uint64_t> slots SFS_GUARDED_BY(mutex);
  };
  Part& part_of(InodeId id) { return parts_[inode_unit(id) % kParts]; }
  std::optional<uint64_t> find(InodeId id);
  std::optional<uint64_t> pick(Part& part, InodeId id);
  Result<uint64_t> pick_from_chain(Part& part, InodeId id) SFS_EXCLUDES(mutex_);
  void collect() SFS_REQUIRES(mutex_);
  Result<void> load_next() SFS_REQUIRES(mutex_);
  Result<void> grow() SFS_REQUIRES(mutex_);
  void add_unit(uint64_t unit) SFS_REQUIRES(mutex_);

  Heap& heap_;
  std::array<Part, kParts> parts_;
  Mutex mutex_;  // the chain's
  uint64_t last_unit_ SFS_GUARDED_BY(mutex_) = 0, units_ SFS_GUARDED_BY(mutex_) = 0;
  uint64_t next_unit_ SFS_GUARDED_BY(mutex_) = 0;      // not read yet; 0 = all are
  std::vector<InodeId> found_ SFS_GUARDED_BY(mutex_);  // in the units when they were read
  std::vector<uint64_t> free_ SFS_GUARDED_BY(mutex_);  // META offsets, of no part
};

}  // namespace streamfs::meta
