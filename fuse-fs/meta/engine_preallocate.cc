// Unwritten extents: blocks that a file has before anything is written to them (fallocate()).
//
//   preallocate ──► unwritten extents ──write──► written in place ──unwrite──► unwritten
//
// Each step is committed by itself; docs/ORDERING.md "Preallocated blocks" has the order.
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine_impl.h"
#include "fuse-fs/meta/layout.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kAtOnce = 0;  // the epoch of changes that need no flush

}  // namespace

Result<SlotRoom> Engine::slot_room(uint64_t slots) {
  SlotRoom room;
  for (uint64_t i = 0; i < div_round_up(slots, kExtentSlotsPerUnit); ++i) {
    SFS_ASSIGN(Heap::Claim unit, heap_.take(Heap::Purpose::kCreate));
    room.units.push_back(std::move(unit));
  }
  return room;
}

Result<void> Engine::preallocate(InodeId id, std::span<const WriteResult::NewPiece> pieces,
                                 SlotRoom& room) {
  const auto inode = lock_inode(id);
  const auto extents = inode ? this->extents(**inode) : inode.error();
  if (!extents || read_only_) {
    for (const auto& piece : pieces) blocks_.cancel({piece.block, piece.length});
    return extents ? Error{EROFS} : extents.error();
  }
  for (const auto& [first, block, length, vstream] : pieces)
    discard((*extents)->add({first.value, length, block.value, vstream.value, true}, kAtOnce));
  (*extents)->absorb(room);
  (*inode)->mtime = (*inode)->ctime = now();
  Result<void> done = commit_steps(**inode, kAtOnce);
  if (!done.ok()) take_back(**extents, pieces);
  return done;
}

// Removes the pieces of a preallocation that failed. Pieces that an earlier record has committed go
// with the next commit.
void Engine::take_back(ExtentMap& extents, std::span<const WriteResult::NewPiece> pieces) {
  for (const auto& piece : pieces) {
    for (const auto& [run, committed] : extents.remove(piece.first.value, piece.length))
      if (!committed) blocks_.cancel(run);
  }
}

Result<void> Engine::unwrite(InodeId id, FileBlock first, uint64_t count, SlotRoom& room) {
  SFS_TRY(writable());
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(ExtentMap * extents, this->extents(*inode));
  if (extents->dirty() || !inode->growth.empty() || !inode->overwritten.empty())
    return Error{EBUSY, "the file has changes that are not committed"};
  extents->unwrite(first.value, first.value + count);
  extents->absorb(room);
  inode->mtime = inode->ctime = now();
  return commit_steps(*inode, kAtOnce);
}

// Finishes a commit of several records that a crash has cut short. If META has no room for that,
// the next commit goes on with it.
Result<void> Engine::finish_extending(Inode& inode) {
  if ((inode.committed.flags & kExtending) == 0) return {};
  Result<void> done = commit_steps(inode, kAtOnce);
  return !done.ok() && done.error().code == ENOSPC ? Result<void>() : done;
}

}  // namespace streamfs::meta
