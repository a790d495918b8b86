// Attributes and symlinks. Extended attributes are in engine_xattrs.cc.
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine_impl.h"

namespace streamfs::meta {
namespace {

constexpr uint32_t kPermissionBits = 07777;

// Clears setuid and, if the group may execute, setgid, as the kernel does when such a file is
// written or given away.
uint32_t without_privileges(uint32_t mode) {
  mode &= ~uint32_t{S_ISUID};
  if ((mode & S_IXGRP) != 0) mode &= ~uint32_t{S_ISGID};
  return mode;
}

void change_mode(InodeImage& next, const AttributeChange& change) {
  uint32_t mode = next.mode;
  if (change.mode) mode = (mode & S_IFMT) | (*change.mode & kPermissionBits);
  const bool given_away = (change.uid || change.gid) && !change.mode && !is_directory(next);
  if (change.clear_suid || given_away) mode = without_privileges(mode);
  if (change.clear_sgid) mode &= ~uint32_t{S_ISGID};
  next.mode = static_cast<uint16_t>(mode);
}

uint64_t packed(Timestamp time) {
  return pack_time(time.seconds, time.nanoseconds);
}

}  // namespace

Result<Attributes> Engine::attributes(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  return attributes_of(*inode);
}

Result<Attributes> Engine::set_attributes(InodeId id, const AttributeChange& request) {
  SFS_TRY(writable());
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  if (request.lazily && is_regular(inode->committed)) {
    if (request.mtime) inode->mtime = packed(*request.mtime);
    if (request.ctime) inode->ctime = packed(*request.ctime);
    inode->attributes_dirty = inode->attributes_dirty || inode->committed.nlink != 0;
    return attributes_of(*inode);
  }
  Change change = this->change();
  InodeImage& next = change.next(*inode);
  change_mode(next, request);
  if (request.uid) next.uid = *request.uid;
  if (request.gid) next.gid = *request.gid;
  if (request.atime) next.atime = packed(*request.atime);
  if (request.mtime) next.mtime = packed(*request.mtime);
  if (request.vstream) set_vstream(next, *request.vstream, 0, request.vstream->value != 0);
  next.ctime = request.ctime ? packed(*request.ctime) : now();
  const bool given_away = request.uid || request.gid;
  if (given_away && (next.flags & kHasCapability) != 0) {
    SFS_TRY(commit_without_capability(change, *inode));
  } else {
    SFS_TRY(change.commit());
  }
  // An explicit time counts even where it equals the committed one.
  if (request.mtime) inode->mtime = inode->committed.mtime;
  inode->ctime = inode->committed.ctime;
  return attributes_of(*inode);
}

Result<std::string> Engine::read_symlink(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  if (!is_symlink(inode->committed)) return Error{EINVAL, "not a symbolic link"};
  return target_of(*inode);
}

Result<std::string> Engine::target_of(const Inode& symlink) const {
  const InodeImage& image = symlink.committed;
  if ((image.flags & kInlineSymlink) != 0) {
    return std::string(reinterpret_cast<const char*>(image.inline_area), image.size);
  }
  SFS_ASSIGN(std::string target, read_blob(heap_, image.symlink, symlink.id, kBlockSize));
  if (target.size() != image.size) return Error{EIO, "damaged symbolic link"};
  return target;
}

}  // namespace streamfs::meta
