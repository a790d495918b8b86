// Attributes, symlinks and extended attributes.
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine_impl.h"

namespace streamfs::meta {
namespace {

constexpr uint32_t kPermissionBits = 07777;

// As the kernel does when a file that could be run as someone else is written or given away.
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
  next.mode = static_cast<uint16_t>(mode);
}

uint64_t packed(Timestamp time) {
  return pack_time(time.seconds, time.nanoseconds);
}

}  // namespace

Result<Attributes> EngineImpl::attributes(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  return attributes_of(*inode);
}

Result<Attributes> EngineImpl::set_attributes(InodeId id, const AttributeChange& request) {
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
  if (request.vstream) set_vstream(next, *request.vstream, request.vstream->value != 0);
  next.ctime = request.ctime ? packed(*request.ctime) : now();
  SFS_TRY(change.commit());
  // An explicit time counts even where it equals the committed one.
  if (request.mtime) inode->mtime = inode->committed.mtime;
  inode->ctime = inode->committed.ctime;
  return attributes_of(*inode);
}

Result<std::string> EngineImpl::read_symlink(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  const InodeImage& image = inode->committed;
  if (!is_symlink(image)) return Error{EINVAL, "not a symbolic link"};
  if ((image.flags & kInlineSymlink) != 0) {
    return std::string(reinterpret_cast<const char*>(image.inline_area), image.size);
  }
  SFS_ASSIGN(std::string target, read_blob(heap_, image.symlink, id, kBlockSize));
  if (target.size() != image.size) return Error{EIO, "damaged symbolic link"};
  return target;
}

Result<XattrMap> EngineImpl::xattrs(const Inode& inode) const {
  if (inode.committed.xattr == 0) return XattrMap();
  SFS_ASSIGN(const std::string bytes,
             read_blob(heap_, inode.committed.xattr, inode.id, kMaxXattrBytes));
  return decode_xattrs(bytes);
}

Result<std::string> EngineImpl::get_xattr(InodeId id, std::string_view name) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(XattrMap all, xattrs(*inode));
  const auto found = all.find(name);
  if (found == all.end()) return Error{ENODATA};
  return std::move(found->second);
}

Result<std::vector<std::string>> EngineImpl::list_xattr(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(const XattrMap all, xattrs(*inode));
  std::vector<std::string> names;
  for (const auto& [name, value] : all) names.push_back(name);
  return names;
}

Result<void> EngineImpl::set_xattr(InodeId id, std::string_view name, std::string_view value,
                                   int flags) {
  SFS_TRY(writable());
  if (name.empty() || name.size() > kMaxNameLength) return Error{ERANGE, "attribute name"};
  if (value.size() > kMaxXattrBytes) return Error{E2BIG};
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(XattrMap all, xattrs(*inode));
  const bool exists = all.contains(name);
  if ((flags & XATTR_CREATE) != 0 && exists) return Error{EEXIST};
  if ((flags & XATTR_REPLACE) != 0 && !exists) return Error{ENODATA};
  all.insert_or_assign(std::string(name), std::string(value));
  return store_xattrs(*inode, all);
}

Result<void> EngineImpl::remove_xattr(InodeId id, std::string_view name) {
  SFS_TRY(writable());
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(XattrMap all, xattrs(*inode));
  const auto found = all.find(name);
  if (found == all.end()) return Error{ENODATA};
  all.erase(found);
  return store_xattrs(*inode, all);
}

Result<void> EngineImpl::store_xattrs(Inode& inode, const XattrMap& attributes) {
  const std::string bytes = encode_xattrs(attributes);
  if (bytes.size() > kMaxXattrBytes) return Error{E2BIG};
  SFS_ASSIGN(const auto old, heap_.chain(inode.committed.xattr, UnitKind::kBlob, inode.id));
  if (old.size() > kMaxBlobUnits) return Error{EIO, "blob too long"};
  Change change = this->change();
  SFS_ASSIGN(NewBlob blob, put_blob(change.tx, heap_, inode.id, bytes));
  change.next(inode).xattr = blob.first;
  change.next(inode).ctime = now();
  SFS_TRY(commit_drop(change, old, {}));
  blob.keep();
  return {};
}

}  // namespace streamfs::meta
