// Inodes: their image in META and the object in memory that ties committed and current together.
//
// Thread safety: an Inode's fields are guarded by its mutex unless said otherwise; InodeCache is
// safe from any thread (one leaf mutex a shard). Lock order: inodes by ascending InodeId.
// What a crash leaves: `committed` always equals what META (with its journal) says; the rest is
// memory only.
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
// What inodes are found by in memory: one number for those of a heap unit.
inline uint64_t inode_unit(InodeId id) {
  return id.value / kInodesPerUnit;
}
InodeImage load_image(const pmem::Region& region, InodeId id);
// The image in this slot. Errors: ESTALE (a free slot), EIO (damaged).
Result<InodeImage> find_inode(const pmem::Region& region, InodeId id, Look look = Look::kFirst);
// The same, and ESTALE where there is no slot at all.
Result<InodeImage> read_inode(const Heap& heap, InodeId id, Look look = Look::kFirst);
// What makes an image unbelievable, or nullptr.
const char* image_problem(const InodeImage& image, InodeId id);
// Finishes next's checksum and patches the words in which it differs from what META holds.
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
  bool alive = true;            // false once freed: whoever still holds it finds nothing
  InodeEntry* entry = nullptr;  // the cache's, under its shard's mutex; none once it has let go

  // The current view. Equal to committed where nothing waits for a device flush.
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
  // Not only its times: what was written cannot be read back without a commit.
  bool changed_place() const { return size != committed.size || (extents && extents->dirty()); }
  uint64_t blocks() const;  // current
  uint64_t bytes() const;   // about what it takes in memory
  // `next` has been committed: explicit changes show in the current view too.
  void adopt(const InodeImage& next);

 private:
  void adopt_committed();
};

class InodeCache;

// What InodeCache knows of an inode. shared_ptr: a freed slot may be reused while a stale operation
// still holds the old object.
struct InodeEntry {
  std::shared_ptr<Inode> inode;  // none: evicted, or never asked for
  uint64_t lookups = 0;
  uint64_t bytes = 0;
  uint32_t pins = 0;
  uint32_t rounds = 0;  // that the hand passes by
  bool used() const { return inode != nullptr || lookups > 0; }
};

// Those of a heap unit side by side: who lists a directory asks for one after the other.
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

// Inodes in memory: those pinned by an operation or dirty, and of the rest that the kernel
// references as many as the limit allows. Of the others only the number of references is kept, so
// that the limit holds unless the kernel knows of more files than it has room for such numbers.
class InodeCache {
 public:
  InodeCache(const Heap& heap, uint64_t limit_bytes) : heap_(heap), limit_bytes_(limit_bytes) {}

  Result<InodeRef> get(InodeId id);
  InodeRef find(InodeId id);  // only if it is in memory
  // A new inode, locked before anyone can see it; `lock` gets its mutex.
  InodeRef insert(InodeId id, const InodeImage& image, std::unique_lock<Mutex>& lock);
  void erase(Inode& inode);        // freed, or never born
  void add_lookup(Inode& pinned);  // by the kernel
  // One to each of these that is in memory and that nobody works on; it is shown, locked, and the
  // places of the others are returned.
  using Show = std::function<void(size_t place, const Inode& inode)>;
  std::vector<size_t> add_lookups(std::span<const InodeId> ids, const Show& show);
  // Asks for the memory of those that are there, so that add_lookups() need not wait for it.
  void warm(std::span<const InodeId> ids);
  std::vector<InodeId> looked_up();                   // every inode with lookups
  uint64_t drop_lookups(InodeId id, uint64_t count);  // what is left
  uint64_t bytes() const;                             // about what all of it takes

 private:
  friend class InodeRef;
  using Entry = InodeEntry;
  struct alignas(kLineSize) Shard {  // neighbours are others'
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
  Entry* known(Shard& at, InodeId id) SFS_REQUIRES(at.mutex);   // none: nobody asked for it
  Entry& to_use(Shard& at, InodeId id) SFS_REQUIRES(at.mutex);  // the caller does, now
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
  // A rename: two directories, what their names led to when it was tried before, and do now.
  static constexpr size_t kMost = 6;
  InodeLocks() = default;
  InodeLocks(const InodeLocks&) = delete;
  InodeLocks& operator=(const InodeLocks&) = delete;
  ~InodeLocks();
  bool contains(InodeId id) const { return find(id) != nullptr; }
  void add(InodeRef ref);  // one that is not contained
  void lock() SFS_NO_TSA;  // all that were added
  // One more, after lock(), whatever its id; false: somebody else has it.
  bool try_lock(InodeRef ref) SFS_NO_TSA;
  // The locked inode of this id, which must be one of these.
  Inode& operator[](InodeId id) const;

 private:
  Inode* find(InodeId id) const;

  std::array<InodeRef, kMost> refs_;
  size_t count_ = 0;
  bool locked_ = false;
};

}  // namespace streamfs::meta
