// The parts that the engine's operations are built from. Only engine.cc and engine_*.cc include
// this header. engine.h states thread safety and the state after a crash.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <span>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/blob/xattr.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/inode_cache.h"
#include "fuse-fs/meta/inode_slots.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/orphans.h"
#include "pmem/region.h"

namespace streamfs::meta {

// A change being prepared: the next images of locked inodes and the transaction around them.
// Nothing in memory changes before its commit succeeds.
class Change {
 public:
  Change(Journal& journal, pmem::Region& region) : tx(region), journal_(journal) {}

  // Returns the image that the inode will have. It starts as the committed one. The reference is
  // valid until commit(). Requires: the inode is locked until then.
  InodeImage& next(Inode& inode);
  // Commits the transaction with all images. On success the inodes adopt their images; after an
  // error they are as before. Errors: those of Journal::commit().
  Result<TxId> commit();

  Transaction tx;

 private:
  struct Next {
    Inode* inode;
    InodeImage image;
  };
  std::span<Next> all() { return std::span(images_).first(count_); }

  Journal& journal_;
  std::array<Next, 8> images_;  // enough for a rename; the first count_ are in use
  size_t count_ = 0;
};

// A locked inode.
struct Locked {
  InodeRef ref;
  std::unique_lock<Mutex> lock;  // after ref: unlocked before the pin goes
  Inode* operator->() const { return ref.get(); }
  Inode& operator*() const { return *ref; }
};

// Holds what a new inode takes before its commit: a slot, an image, blobs and a place among the
// orphans.
struct Engine::NewInode {
  InodeSlots::Claim slot;
  InodeImage image{};
  NewBlob long_symlink, xattrs;
  Orphans::Claim orphan;
};

// Errors: EINVAL, ENAMETOOLONG.
Result<void> check_name(std::string_view name);

}  // namespace streamfs::meta
