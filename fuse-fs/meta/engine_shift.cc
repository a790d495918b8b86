// Blocks taken out of the middle of a file or put into it, and the rest moved.
//
//   one record: what goes is freed, slots move, size ──► done
//   more slots than that: its first record says a shift (shift.h) ──► slots, a record at a time ──►
//   done
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine_impl.h"
#include "fuse-fs/meta/shift.h"

namespace streamfs::meta {

Result<void> EngineImpl::collapse_range(InodeId id, FileBlock first, uint64_t count) {
  SFS_TRY(writable());
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_TRY(extents(*inode));
  const uint64_t blocks = div_round_up(inode->size, kBlockSize);
  if (count == 0 || first.value >= blocks || count >= blocks - first.value)
    return Error{EINVAL, "a collapse to the end of the file"};
  return shift_range(*inode, {false, first.value, count, 0}, inode->size - count * kBlockSize);
}

Result<void> EngineImpl::insert_range(InodeId id, FileBlock first, uint64_t count) {
  SFS_TRY(writable());
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_TRY(extents(*inode));
  const uint64_t room = kMaxFileBlocks - div_round_up(inode->size, kBlockSize);
  if (count > room) return Error{EFBIG};
  if (count == 0 || first.value * kBlockSize >= inode->size)
    return Error{EINVAL, "an insertion at the end of the file"};
  return shift_range(*inode, {true, first.value, count, 0}, inode->size + count * kBlockSize);
}

Result<void> EngineImpl::shift_range(Inode& inode, const Shift& shift, uint64_t size) {
  if (inode.extents->dirty() || !inode.growth.empty() || !inode.overwritten.empty())
    return Error{EBUSY, "the file has changes that are not committed"};
  Change change = this->change();
  InodeImage& next = change.next(inode);
  auto plan = inode.extents->plan_shift(change.tx, next, shift);
  if (!plan) {
    SFS_TRY(inode.extents->restore(inode.committed));
    return plan.error();
  }
  next.size = size;
  next.mtime = next.ctime = now();
  SFS_TRY(commit_plan(inode, change, std::move(plan).value()));
  inode.size = inode.settled_size = size;
  inode.mtime = next.mtime;
  inode.ctime = next.ctime;
  inode.attributes_dirty = false;
  return finish_shift(inode);
}

// Those of a run that was cut too: by whoever first needs the file's extents.
Result<void> EngineImpl::finish_shift(Inode& inode) {
  while (inode.extents->shifting()) SFS_TRY(commit_step(inode, 0));
  return {};
}

}  // namespace streamfs::meta
