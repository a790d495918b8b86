// Reads and changes the image of an inode in META, and defines the inode in memory, which has the
// committed and the current view.
//
// Thread safety: an Inode's fields are guarded by its mutex unless their comments say otherwise.
// Lock order: inodes by ascending InodeId.
// After a crash: META and its journal hold the image that `committed` had. All else is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
// Returns the key by which memory is divided among inodes: the same for all inodes of a heap unit.
inline uint64_t inode_unit(InodeId id) {
  return id.value / kInodesPerUnit;
}
InodeImage load_image(const pmem::Region& region, InodeId id);  // does not check it
// Reads and checks the image in this slot. Errors: ESTALE (a free slot), EIO (damaged).
Result<InodeImage> find_inode(const pmem::Region& region, InodeId id, Look look = Look::kFirst);
// Does the same, and returns ESTALE if no inode unit has such a slot.
Result<InodeImage> read_inode(const Heap& heap, InodeId id, Look look = Look::kFirst);
// Returns why an image cannot be right, or nullptr.
const char* image_problem(const InodeImage& image, InodeId id);
// Stores the checksum of `next` in it, and adds to `tx` the words in which it differs from
// `committed`.
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

  // The current view. It equals the committed view in all fields that wait for no device flush.
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
  std::vector<Overwritten> overwritten;  // runs whose checksums wait for their epoch's flush
  UncommittedBlocks uncommitted;
  std::unique_ptr<ExtentMap> extents;  // null until the first use, as is `directory`
  std::unique_ptr<Directory> directory;

  bool dirty() const {
    return attributes_dirty || !overwritten.empty() || (extents && extents->dirty());
  }
  // Returns whether current differs from committed in more than times, so that data written since
  // cannot be read back without a commit.
  bool changed_place() const { return size != committed.size || (extents && extents->dirty()); }
  uint64_t blocks() const;  // current
  uint64_t bytes() const;   // about what it takes in memory
  // Takes over `next`, which has been committed. If it changes mtime or ctime, the current view
  // gets the new time. If it changes the size, the current view gets that, unless attributes_dirty.
  void adopt(const InodeImage& next);

 private:
  void adopt_committed();
};

}  // namespace streamfs::meta
