// Inodes: their image in META, and the object in memory that has the committed and the current
// view.
//
// Thread safety: an Inode's fields are guarded by its mutex unless said otherwise; InodeCache is
// safe from any thread (one leaf mutex a shard). Lock order: inodes by ascending InodeId.
// After a crash: META (with its journal) holds what `committed` said; all else was memory only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/directory.h"
#include "fuse-fs/meta/extent_map.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/mended.h"

namespace streamfs::meta {

Timestamp unpack_time(uint64_t packed);

inline uint64_t inode_offset(InodeId id) {
  return id.value * kCellSize;
}
// Returns the number by which inodes are found in memory: the same for all inodes of a heap unit.
inline uint64_t inode_unit(InodeId id) {
  return id.value / kInodesPerUnit;
}
InodeImage load_image(const pmem::Region& region, InodeId id);
// Reads and checks the image in this slot. Errors: ESTALE (a free slot), EIO (damaged).
Result<InodeImage> find_inode(const pmem::Region& region, InodeId id, Look look = Look::kFirst);
// Does the same, and returns ESTALE if no inode unit has such a slot.
Result<InodeImage> read_inode(const Heap& heap, InodeId id, Look look = Look::kFirst);
// Returns why an image cannot be right, or nullptr.
const char* image_problem(const InodeImage& image, InodeId id);
// Computes the checksum of `next` and patches the words in which it differs from `committed`.
void put_image(Transaction& tx, InodeId id, const InodeImage& committed, InodeImage& next);

inline bool is_directory(const InodeImage& image) {
  return (image.mode & 0170000) == 0040000;
}
inline bool is_regular(const InodeImage& image) {
  return (image.mode & 0170000) == 0100000;
}
inline bool is_symlink(const InodeImage& image) {
  return (image.mode & 0170000) == 0120000;
}
inline constexpr uint64_t kBlockCountMask = (uint64_t{1} << 40) - 1;
inline uint64_t block_count(const InodeImage& image) {
  return image.blocks_vstream & kBlockCountMask;
}
inline VStreamId vstream_of(const InodeImage& image) {
  return VStreamId{static_cast<uint16_t>(image.blocks_vstream >> 48)};
}
inline uint8_t vstream_generation_of(const InodeImage& image) {
  return static_cast<uint8_t>(image.blocks_vstream >> 40);
}
void set_block_count(InodeImage& image, uint64_t blocks);
void set_vstream(InodeImage& image, VStreamId vstream, uint8_t generation, bool hinted);

struct InodeEntry;

class Inode {
 public:
  Inode(InodeId own_id, const InodeImage& image) : id(own_id), committed(image) {
    adopt_committed();
  }

  const InodeId id;
  Mutex mutex;
  InodeImage committed;
  bool alive = true;            // false once freed, for operations that still hold a reference
  InodeEntry* entry = nullptr;  // guarded by its shard's mutex; null once the cache has let go

  // The current view. It equals the committed one where nothing waits for a device flush.
  uint64_t size = 0, mtime = 0, ctime = 0;
  bool attributes_dirty = false;
  uint64_t ready_size = 0;  // the size that a commit may store without waiting for a flush
  struct Growth {
    uint64_t epoch, size;
  };
  std::vector<Growth> growth;  // ascending; sizes that wait for their epoch's flush
  struct Overwritten {
    BlockNo first;
    uint64_t count, epoch;
  };
  std::vector<Overwritten> overwritten;  // checksums of these wait for their epoch's flush
  UncommittedBlocks uncommitted;
  std::unique_ptr<ExtentMap> extents;  // loaded at first use
  std::unique_ptr<Directory> directory;

  bool dirty() const {
    return attributes_dirty || !overwritten.empty() || (extents && extents->dirty());
  }
  // Returns whether current differs from committed in more than times, so that data written since
  // cannot be read back without a commit.
  bool changed_place() const { return size != committed.size || (extents && extents->dirty()); }
  uint64_t blocks() const;  // current
  uint64_t bytes() const;   // about what it takes in memory
  // Takes over `next`, which has been committed. Its explicit changes show in the current view too.
  void adopt(const InodeImage& next);

 private:
  void adopt_committed();
};

class InodeCache;

// InodeCache's entry for an inode. The inode is a shared_ptr, because a freed slot may be reused
// while a stale operation still holds the old object.
struct InodeEntry {
  std::shared_ptr<Inode> inode;  // none: evicted, or never asked for
  uint64_t lookups = 0;
  uint64_t bytes = 0;
  uint32_t pins = 0;
  uint32_t rounds = 0;  // how often the hand passes it by before it may be evicted
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

// The inodes in memory. Inodes that are dirty or pinned by an operation are always in memory. The
// limit decides how many other inodes that the kernel references stay; for the rest only the
// reference count is kept. Memory exceeds the limit only by dirty and pinned inodes and by
// reference counts.
class InodeCache {
 public:
  InodeCache(const Heap& heap, uint64_t limit_bytes) : heap_(heap), limit_bytes_(limit_bytes) {}

  Result<InodeRef> get(InodeId id);
  InodeRef find(InodeId id);  // only if it is in memory
  // Adds a new inode, which is locked before anyone can see it; `lock` gets its mutex.
  InodeRef insert(InodeId id, const InodeImage& image, std::unique_lock<Mutex>& lock);
  void erase(Inode& inode);        // freed, or never born
  void add_lookup(Inode& pinned);  // by the kernel
  // Adds a lookup to each of these inodes that is in memory and not locked, and calls `show` with
  // it locked. Returns the places of the others.
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
  Entry* known(Shard& at, InodeId id) SFS_REQUIRES(at.mutex);   // null: there is none
  Entry& to_use(Shard& at, InodeId id) SFS_REQUIRES(at.mutex);  // the caller must use it at once
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
  std::atomic<uint64_t> in_vain_below_{0};
  std::atomic<size_t> next_shard_{0};  // to evict from
};

// Locks several inodes, each once, and waits for them in ascending order of their ids only.
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
  void add(InodeRef ref);  // requires: not contained
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
