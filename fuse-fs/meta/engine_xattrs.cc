// Extended attributes, and access control lists among them.
//
// An inode's attributes lie in the inode if they fit, else in a blob. A change writes all of them
// anew and commits one record.
// After a crash: all attributes are old or all are new.
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/engine_impl.h"
#include "fuse-fs/meta/image.h"

namespace streamfs::meta {
namespace {

constexpr std::string_view kCapabilityName = "security.capability";
constexpr uint32_t kPermissions = 0777;

// Errors: the same as those of local filesystems.
Result<void> check_xattr_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) return Error{ERANGE, "attribute name"};
  for (const std::string_view space : {"user.", "trusted.", "security."}) {
    if (!name.starts_with(space)) continue;
    return name.size() > space.size() ? Result<void>() : Result<void>(Error{EINVAL});
  }
  return Error{EOPNOTSUPP, "attribute namespace"};
}

bool is_acl(std::string_view name) {
  return name == kAccessAclName || name == kDefaultAclName;
}

std::string_view acl_key(std::string_view name) {
  return name == kAccessAclName ? kAccessAclKey : kDefaultAclKey;
}

// Returns the name under which a stored attribute is listed.
std::string listed(std::string_view key) {
  if (key == kAccessAclKey) return std::string(kAccessAclName);
  if (key == kDefaultAclKey) return std::string(kDefaultAclName);
  return std::string(key);
}

Result<Acl> acl_of(const InodeImage& image, std::string_view key, std::string_view stored) {
  SFS_ASSIGN(Acl acl, decode_acl(stored));
  if (key == kAccessAclKey) take_permissions(acl, image.mode);
  return acl;
}

}  // namespace

Result<XattrMap> Engine::xattrs(const Inode& inode) const {
  const InodeImage& image = inode.committed;
  if (image.inline_xattr_bytes > 0) {
    const auto bytes = std::as_bytes(inline_xattr_words(image)).first(image.inline_xattr_bytes);
    return decode_xattrs({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  if (image.xattr == 0) return XattrMap();
  SFS_ASSIGN(const std::string bytes, read_blob(heap_, image.xattr, inode.id, kMaxXattrBytes));
  return decode_xattrs(bytes);
}

Result<std::string> Engine::get_xattr(InodeId id, std::string_view name) {
  const bool acl = is_acl(name);
  if (!acl) SFS_TRY(check_xattr_name(name));
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(XattrMap all, xattrs(*inode));
  const std::string_view key = acl ? acl_key(name) : name;
  const auto found = all.find(key);
  if (found == all.end()) return Error{ENODATA};
  if (!acl) return std::move(found->second);
  SFS_ASSIGN(const Acl list, acl_of(inode->committed, key, found->second));
  return format_acl(list);
}

Result<std::vector<std::string>> Engine::list_xattr(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(const XattrMap all, xattrs(*inode));
  std::vector<std::string> names;
  for (const auto& [name, value] : all) names.push_back(listed(name));
  return names;
}

Result<void> Engine::set_xattr(InodeId id, std::string_view name, std::string_view value,
                               int flags) {
  SFS_TRY(writable());
  if (is_acl(name)) return set_acl(id, name, value, (flags & kXattrKillSgid) != 0);
  SFS_TRY(check_xattr_name(name));
  if (value.size() > kMaxXattrBytes) return Error{E2BIG};
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(XattrMap all, xattrs(*inode));
  const bool exists = all.contains(name);
  if ((flags & XATTR_CREATE) != 0 && exists) return Error{EEXIST};
  if ((flags & XATTR_REPLACE) != 0 && !exists) return Error{ENODATA};
  all.insert_or_assign(std::string(name), std::string(value));
  Change change = this->change();
  return commit_xattrs(change, *inode, all);
}

// An access ACL sets the mode's permission bits. If it says no more than they do, it is not kept.
Result<void> Engine::set_acl(InodeId id, std::string_view name, std::string_view value,
                             bool kill_sgid) {
  SFS_ASSIGN(const Acl acl, parse_acl(value));
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  if (is_symlink(inode->committed)) return Error{EOPNOTSUPP, "ACL of a symbolic link"};
  const bool access = name == kAccessAclName;
  if (!access && !is_directory(inode->committed)) return Error{EACCES, "default ACL of a file"};
  SFS_ASSIGN(XattrMap all, xattrs(*inode));
  Change change = this->change();
  const std::string key(acl_key(name));
  if (!access) {
    all.insert_or_assign(key, encode_default_acl(acl));
  } else {
    uint32_t mode = (change.next(*inode).mode & ~kPermissions) | permissions_of(acl);
    if (kill_sgid) mode &= ~uint32_t{S_ISGID};
    change.next(*inode).mode = static_cast<uint16_t>(mode);
    all.erase(key);
    if (!acl.is_plain()) all.emplace(key, encode_access_acl(acl));
  }
  return commit_xattrs(change, *inode, all);
}

Result<void> Engine::remove_xattr(InodeId id, std::string_view name) {
  SFS_TRY(writable());
  const bool acl = is_acl(name);
  if (!acl) SFS_TRY(check_xattr_name(name));
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  SFS_ASSIGN(XattrMap all, xattrs(*inode));
  const auto found = all.find(acl ? acl_key(name) : name);
  if (found == all.end()) return acl ? Result<void>() : Result<void>(Error{ENODATA});
  all.erase(found);
  Change change = this->change();
  return commit_xattrs(change, *inode, all);
}

// Gives the image these attributes. Errors: ENOSPC, they are more than an inode may have, or META
// has no room.
Result<NewBlob> Engine::put_xattrs(Change& change, InodeId id, InodeImage& image,
                                   const XattrMap& attributes) {
  const std::string bytes = encode_xattrs(attributes);
  if (bytes.size() > kMaxXattrBytes) return Error{ENOSPC, "extended attributes of an inode"};
  const auto flags = image.flags & ~kHasCapability;
  const bool capability = attributes.contains(kCapabilityName);
  image.flags = static_cast<uint16_t>(flags | (capability ? kHasCapability : 0));
  image.xattr = image.inline_xattr_bytes = 0;
  const auto room = inline_xattr_words(image);
  NewBlob blob;
  if (bytes.size() > room.size_bytes()) {
    SFS_ASSIGN(blob, put_blob(change.tx, heap_, id, bytes));
    image.xattr = blob.first;
  } else if (!bytes.empty()) {
    std::ranges::fill(room, 0);
    std::memcpy(room.data(), bytes.data(), bytes.size());
    image.inline_xattr_bytes = bytes.size();
  }
  return blob;
}

// Commits the change, with these attributes in place of the present ones.
Result<void> Engine::commit_xattrs(Change& change, Inode& inode, const XattrMap& attributes) {
  SFS_ASSIGN(const auto old, heap_.chain(inode.committed.xattr, UnitKind::kBlob, inode.id));
  if (old.size() > kMaxBlobUnits) return Error{EIO, "blob too long"};
  InodeImage& next = change.next(inode);
  SFS_ASSIGN(NewBlob blob, put_xattrs(change, inode.id, next, attributes));
  next.ctime = now();
  SFS_TRY(commit_drop(change, old, {}));
  blob.keep();
  return {};
}

Result<void> Engine::commit_without_capability(Change& change, Inode& inode) {
  SFS_ASSIGN(XattrMap all, xattrs(inode));
  all.erase(std::string(kCapabilityName));
  return commit_xattrs(change, inode, all);
}

Result<void> Engine::drop_capability(InodeId id) {
  SFS_ASSIGN(const Locked inode, lock_inode(id));
  if ((inode->committed.flags & kHasCapability) == 0) return {};
  SFS_TRY(writable());
  Change change = this->change();
  return commit_without_capability(change, *inode);
}

Result<std::optional<Acl>> Engine::default_acl(const Inode& directory) const {
  SFS_ASSIGN(const XattrMap all, xattrs(directory));
  const auto found = all.find(kDefaultAclKey);
  if (found == all.end()) return std::optional<Acl>();
  SFS_ASSIGN(Acl acl, decode_acl(found->second));
  return std::optional(std::move(acl));
}

// Sets the mode and the ACLs of a new inode, by the parent's default ACL or else by the umask.
Result<NewBlob> Engine::put_permissions(Change& change, InodeId id, InodeImage& image,
                                        const Inode& parent, uint32_t umask) {
  if (is_symlink(image)) return NewBlob();
  SFS_ASSIGN(const auto from_parent, default_acl(parent));
  if (!from_parent) {
    image.mode = static_cast<uint16_t>(image.mode & ~(umask & kPermissions));
    return NewBlob();
  }
  const Inherited got = inherit(*from_parent, image.mode);
  image.mode = static_cast<uint16_t>(got.mode);
  XattrMap all;
  if (got.access) all.emplace(kAccessAclKey, encode_access_acl(*got.access));
  if (is_directory(image)) all.emplace(kDefaultAclKey, encode_default_acl(*from_parent));
  return put_xattrs(change, id, image, all);
}

}  // namespace streamfs::meta
