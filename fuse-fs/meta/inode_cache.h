// The inodes in memory, and the locks of several of them.
//
// Thread safety: InodeCache is safe from any thread. Each shard has a mutex; the cache waits for
// nothing while it holds one, and only tries the mutexes of inodes. An InodeRef and an InodeLocks
// belong to one thread. Lock order: inodes by ascending InodeId, then a shard.
// After a crash: memory only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/inode.h"

namespace streamfs::meta {

class InodeCache;

// InodeCache's entry for an inode. The inode is a shared_ptr, because a freed slot may be reused
// while a stale operation still holds the old object.
struct InodeEntry {
  std::shared_ptr<Inode> inode;  // none: evicted, or never asked for
  uint64_t lookups = 0;
  uint64_t bytes = 0;
  uint32_t pins = 0;
  uint32_t rounds = 0;  // how often the clock's hand still passes by before it evicts the inode
  bool used() const { return inode != nullptr || lookups > 0; }
};

// The entries of a heap unit's inodes. They are side by side, because listing a directory asks for
// one after the other.
struct InodeEntries {
  std::array<InodeEntry, kInodesPerUnit> all;
  uint32_t used = 0;
  InodeEntry& of(InodeId id) { return all[id.value % kInodesPerUnit]; }
};

// Keeps an inode in memory. Movable; not for sharing between threads.
class InodeRef {
 public:
  InodeRef() = default;
  InodeRef(InodeCache& cache, std::shared_ptr<Inode> inode)
      : cache_(&cache), inode_(std::move(inode)) {}
  InodeRef(InodeRef&& other) noexcept = default;
  InodeRef& operator=(InodeRef&& other) noexcept;
  ~InodeRef() { reset(); }
  void reset();
  explicit operator bool() const { return inode_ != nullptr; }
  Inode* operator->() const { return inode_.get(); }
  Inode& operator*() const { return *inode_; }
  Inode* get() const { return inode_.get(); }

 private:
  InodeCache* cache_ = nullptr;
  std::shared_ptr<Inode> inode_;
};

// The inodes in memory. A dirty inode and an inode that an operation pins are always in memory.
// Other inodes to which the kernel refers stay while there is room; of an evicted one only the
// kernel's number of references is kept. An inode without any of the three is dropped. Evictions
// keep memory near the limit, except for dirty and pinned inodes and for reference counts.
class InodeCache {
 public:
  InodeCache(const Heap& heap, uint64_t limit_bytes) : heap_(heap), limit_bytes_(limit_bytes) {}

  // Returns the inode, pinned. Reads it from META if it is not in memory. Errors: those of
  // read_inode(): there is no such inode, or it is damaged.
  Result<InodeRef> get(InodeId id);
  InodeRef find(InodeId id);  // only if it is in memory
  // Adds a new inode, which is locked before anyone can see it; `lock` gets its mutex.
  InodeRef insert(InodeId id, const InodeImage& image, std::unique_lock<Mutex>& lock);
  void erase(Inode& inode);  // requires: the inode is locked, and it was freed or never committed
  void add_lookup(Inode& pinned);  // by the kernel
  // Adds a lookup to each of these inodes that is in memory and not locked, and calls `show` with
  // it and its shard locked: `show` must not call the cache. Returns the places of the others.
  using Show = std::function<void(size_t place, const Inode& inode)>;
  std::vector<size_t> add_lookups(std::span<const InodeId> ids, const Show& show);
  // Prefetches these inodes, if in memory, into the CPU's cache for add_lookups().
  void warm(std::span<const InodeId> ids);
  std::vector<InodeId> looked_up();                   // every inode with lookups
  uint64_t drop_lookups(InodeId id, uint64_t count);  // returns how many are left
  uint64_t bytes() const;                             // about what the cache takes in memory

 private:
  friend class InodeRef;
  using Entry = InodeEntry;
  struct alignas(kLineSize) Shard {  // shares no cache line with another
    Mutex mutex;                     // leaf
    std::unordered_map<uint64_t, InodeEntries> units SFS_GUARDED_BY(mutex);  // by inode_unit()
    size_t hand SFS_GUARDED_BY(mutex) = 0;                                   // a bucket
    int64_t uncounted SFS_GUARDED_BY(mutex) = 0;  // bytes not in bytes_ yet
  };
  using Evicted = std::vector<std::shared_ptr<Inode>>;
  static constexpr size_t kShards = 256;
  Shard& shard(InodeId id) { return shards_[inode_unit(id) % kShards]; }
  void unpin(const std::shared_ptr<Inode>& inode);
  InodeRef pin(Entry& entry);
  template <typename Visit>
  void visit_units(std::span<const InodeId> ids, Visit visit);
  static bool add_lookup_if_free(Entry& entry, size_t place, const Show& show);
  static void let_go(Entry& entry);
  Entry* known(Shard& at, InodeId id) SFS_REQUIRES(at.mutex);  // null: there is none
  // Returns an entry, a new one if need be. The caller makes it used() before it unlocks the shard.
  Entry& to_use(Shard& at, InodeId id) SFS_REQUIRES(at.mutex);
  void unuse(Shard& at, Entry& entry, InodeId id) SFS_REQUIRES(at.mutex);
  void count_bytes(Shard& at, int64_t bytes) SFS_REQUIRES(at.mutex);
  void charge(Shard& at, Entry& entry, uint64_t bytes) SFS_REQUIRES(at.mutex);
  void evict();
  bool evict_from(Shard& at, Evicted& gone);
  bool evict_entry(Shard& at, Entry& entry, Evicted& gone) SFS_REQUIRES(at.mutex);

  const Heap& heap_;
  const uint64_t limit_bytes_;
  std::array<Shard, kShards> shards_;
  alignas(kLineSize) std::atomic<int64_t> bytes_{0};  // added to by the shards now and then
  std::atomic<uint64_t> in_vain_below_{0};  // below so many bytes a search would evict nothing
  std::atomic<size_t> next_shard_{0};       // to evict from
};

// Locks several inodes, each once. lock() waits for them in ascending order of their ids; an inode
// that is added later is only tried.
class InodeLocks {
 public:
  // Enough for a rename: two directories, the inodes that its names led to at the last try, and the
  // inodes that they lead to now.
  static constexpr size_t kMost = 6;
  InodeLocks() = default;
  InodeLocks(const InodeLocks&) = delete;
  InodeLocks& operator=(const InodeLocks&) = delete;
  ~InodeLocks();
  bool contains(InodeId id) const { return find(id) != nullptr; }
  void add(InodeRef ref);  // requires: not locked yet, not contained, and fewer than kMost
  void lock() SFS_NO_TSA;  // locks all that were added
  // Locks one more inode after lock(), whatever its id. Returns false if another thread has it
  // locked.
  bool try_lock(InodeRef ref) SFS_NO_TSA;
  // Returns the locked inode of this id. Requires: it is contained.
  Inode& operator[](InodeId id) const;

 private:
  Inode* find(InodeId id) const;

  std::array<InodeRef, kMost> refs_;
  size_t count_ = 0;
  bool locked_ = false;
};

}  // namespace streamfs::meta
