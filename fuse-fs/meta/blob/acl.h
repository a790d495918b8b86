// Converts POSIX access control lists between the form that programs use, the form in META, and the
// permission bits of a mode.
//
// An access ACL's permissions for the owner, the mask and others are kept in the mode only. A chmod
// therefore changes the mask without touching the list, and the two cannot differ. An access ACL
// that says no more than a mode is not kept at all.
//
// Thread safety: pure functions. After a crash: an ACL is an extended attribute (xattr.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace streamfs::meta {

inline constexpr std::string_view kAccessAclName = "system.posix_acl_access";
inline constexpr std::string_view kDefaultAclName = "system.posix_acl_default";
// The names of ACLs among the extended attributes. No other attribute can have such a name.
inline constexpr std::string_view kAccessAclKey = "\1";
inline constexpr std::string_view kDefaultAclKey = "\2";

// Permissions are the three bits rwx.
struct Acl {
  struct Named {
    bool group = false;
    uint32_t id = 0;
    uint8_t permissions = 0;
  };
  uint8_t owner = 0, group = 0, other = 0;
  std::optional<uint8_t> mask;
  std::vector<Named> named;  // users, then groups

  // Returns whether the permission bits of a mode say the same.
  bool is_plain() const { return !mask && named.empty(); }
};

// Convert between an ACL and the nine permission bits of a mode. The group's bits are those of the
// mask, if there is one.
uint32_t permissions_of(const Acl& acl);
void take_permissions(Acl& acl, uint32_t mode);

// Parses and formats the kernel's extended attribute (linux/posix_acl_xattr.h).
// Errors of parse_acl(): EINVAL, a kind of entry is missing, doubled, unknown or out of order, or
// there are named entries without a mask; EOPNOTSUPP, another version.
Result<Acl> parse_acl(std::string_view bytes);
std::string format_acl(const Acl& acl);

// Conversions from and to META's form (docs/FORMAT.md).
Result<Acl> decode_acl(std::string_view bytes);  // EIO
std::string encode_default_acl(const Acl& acl);
std::string encode_access_acl(const Acl& acl);  // leaves out the permissions that the mode has

// The permissions of a new object in a directory with a default ACL, which replaces the umask.
// `mode` has the bits that were asked for and are granted.
struct Inherited {
  uint32_t mode = 0;
  std::optional<Acl> access;  // set if the mode alone cannot say it
};
Inherited inherit(const Acl& directory_default, uint32_t mode);

}  // namespace streamfs::meta
