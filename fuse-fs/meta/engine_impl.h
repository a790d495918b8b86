// The pieces that the engine's operations are put together from. Every engine_*.cc includes it; see
// engine.h for thread safety and what a crash leaves.
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
#include "fuse-fs/meta/inode_slots.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/orphans.h"
#include "pmem/region.h"

namespace streamfs::meta {

// One change being put together: next images of locked inodes and the transaction around them.
// Nothing in memory changes before its commit succeeds.
class Change {
 public:
  Change(Journal& journal, pmem::Region& region) : tx(region), journal_(journal) {}

  // The image the inode will have; starts as the committed one.
  InodeImage& next(Inode& inode);
  Result<TxId> commit();

  Transaction tx;

 private:
  struct Next {
    Inode* inode;
    InodeImage image;
  };
  std::span<Next> all() { return std::span(images_).first(count_); }

  Journal& journal_;
  std::array<Next, 8> images_;  // a rename's at most; the first count_ are there
  size_t count_ = 0;
};

// A locked inode.
struct Locked {
  InodeRef ref;
  std::unique_lock<Mutex> lock;  // after ref: unlocked before the pin goes
  Inode* operator->() const { return ref.get(); }
  Inode& operator*() const { return *ref; }
};

// An inode on its way into META: its slot, its image, what it needs beside them.
struct Engine::NewInode {
  InodeSlots::Claim slot;
  InodeImage image{};
  NewBlob long_symlink, xattrs;
  Orphans::Claim orphan;
};

// Errors: EINVAL, ENAMETOOLONG.
Result<void> check_name(std::string_view name);

}  // namespace streamfs::meta
