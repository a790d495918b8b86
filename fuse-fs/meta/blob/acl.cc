#include "fuse-fs/meta/blob/acl.h"

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace streamfs::meta {
namespace {

constexpr uint8_t kAllPermissions = 7;

template <typename T>
T take(std::string_view& bytes) {
  T value{};
  std::copy_n(bytes.begin(), sizeof(value), reinterpret_cast<char*>(&value));
  bytes.remove_prefix(sizeof(value));
  return value;
}

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

constexpr uint8_t low_permissions(uint32_t bits) {
  return static_cast<uint8_t>(bits & kAllPermissions);
}

Error invalid(const char* why) {
  return Error{EINVAL, why};
}

// Entries come in this order, and the entries that a mode has exactly once:
//   owner, user*, group, group*, mask?, other
class Parser {
 public:
  Result<void> add(const posix_acl_xattr_entry& entry) {
    if (entry.e_perm > kAllPermissions) return invalid("ACL permissions");
    if (entry.e_tag < last_) return invalid("ACL entries out of order");
    const bool again = entry.e_tag == last_;
    last_ = entry.e_tag;
    const auto permissions = static_cast<uint8_t>(entry.e_perm);
    const bool is_named = entry.e_tag == ACL_USER || entry.e_tag == ACL_GROUP;
    if (again && !is_named) return invalid("ACL entry twice");
    if (is_named && entry.e_id == static_cast<uint32_t>(ACL_UNDEFINED_ID)) return invalid("ACL id");
    if (is_named) {
      acl_.named.push_back({entry.e_tag == ACL_GROUP, entry.e_id, permissions});
      return {};
    }
    return add_unnamed(entry.e_tag, permissions);
  }

  Result<Acl> finish() const {
    constexpr unsigned kNeeded = ACL_USER_OBJ | ACL_GROUP_OBJ | ACL_OTHER;
    if ((seen_ & kNeeded) != kNeeded) return invalid("ACL without owner, group or other");
    if (!acl_.named.empty() && !acl_.mask) return invalid("ACL without mask");
    return acl_;
  }

 private:
  Result<void> add_unnamed(unsigned tag, uint8_t permissions) {
    seen_ |= tag;
    switch (tag) {
      case ACL_USER_OBJ:
        acl_.owner = permissions;
        return {};
      case ACL_GROUP_OBJ:
        acl_.group = permissions;
        return {};
      case ACL_MASK:
        acl_.mask = permissions;
        return {};
      case ACL_OTHER:
        acl_.other = permissions;
        return {};
      default:
        return invalid("ACL entry of an unknown kind");
    }
  }

  Acl acl_;
  unsigned last_ = 0, seen_ = 0;
};

// META's form: these 16 bits, then for each named entry its permissions and kind in one byte and
// its id in four.
constexpr uint16_t kHasMask = 1 << 12;
constexpr uint8_t kNamedGroup = 8;
constexpr size_t kNamedBytes = 5;

uint16_t pack_permissions(const Acl& acl) {
  const unsigned mask = acl.mask ? kHasMask | unsigned{*acl.mask} << 6 : 0;
  return static_cast<uint16_t>(acl.owner | unsigned{acl.group} << 3 | mask |
                               unsigned{acl.other} << 9);
}

}  // namespace

uint32_t permissions_of(const Acl& acl) {
  return uint32_t{acl.owner} << 6 | uint32_t{acl.mask.value_or(acl.group)} << 3 | acl.other;
}

void take_permissions(Acl& acl, uint32_t mode) {
  acl.owner = low_permissions(mode >> 6);
  (acl.mask ? *acl.mask : acl.group) = low_permissions(mode >> 3);
  acl.other = low_permissions(mode);
}

Result<Acl> parse_acl(std::string_view bytes) {
  if (bytes.size() < sizeof(posix_acl_xattr_header) ||
      (bytes.size() - sizeof(posix_acl_xattr_header)) % sizeof(posix_acl_xattr_entry) != 0) {
    return invalid("ACL size");
  }
  if (take<posix_acl_xattr_header>(bytes).a_version != POSIX_ACL_XATTR_VERSION) {
    return Error{EOPNOTSUPP, "ACL version"};
  }
  Parser parser;
  while (!bytes.empty()) SFS_TRY(parser.add(take<posix_acl_xattr_entry>(bytes)));
  return parser.finish();
}

std::string format_acl(const Acl& acl) {
  std::string bytes;
  const auto add = [&bytes](int tag, uint8_t permissions, uint32_t id) {
    append(bytes, posix_acl_xattr_entry{static_cast<uint16_t>(tag), permissions, id});
  };
  const auto add_named = [&](bool group) {
    for (const Acl::Named& each : acl.named) {
      if (each.group == group) add(group ? ACL_GROUP : ACL_USER, each.permissions, each.id);
    }
  };
  constexpr auto kNobody = static_cast<uint32_t>(ACL_UNDEFINED_ID);
  append(bytes, posix_acl_xattr_header{POSIX_ACL_XATTR_VERSION});
  add(ACL_USER_OBJ, acl.owner, kNobody);
  add_named(false);
  add(ACL_GROUP_OBJ, acl.group, kNobody);
  add_named(true);
  if (acl.mask) add(ACL_MASK, *acl.mask, kNobody);
  add(ACL_OTHER, acl.other, kNobody);
  return bytes;
}

Result<Acl> decode_acl(std::string_view bytes) {
  constexpr uint16_t kKnown = kHasMask * 2 - 1;
  const Error damaged{EIO, "damaged ACL"};
  if (bytes.size() < sizeof(uint16_t)) return damaged;
  const auto packed = take<uint16_t>(bytes);
  if (packed > kKnown || bytes.size() % kNamedBytes != 0) return damaged;
  Acl acl;
  acl.owner = low_permissions(packed);
  acl.group = low_permissions(packed >> 3);
  acl.other = low_permissions(packed >> 9);
  if ((packed & kHasMask) != 0) acl.mask = low_permissions(packed >> 6);
  if (!bytes.empty() && !acl.mask) return damaged;
  while (!bytes.empty()) {
    const auto kind = take<uint8_t>(bytes);
    if (kind > (kNamedGroup | kAllPermissions)) return damaged;
    const auto id = take<uint32_t>(bytes);
    acl.named.push_back({(kind & kNamedGroup) != 0, id, low_permissions(kind)});
  }
  return acl;
}

std::string encode_default_acl(const Acl& acl) {
  std::string bytes;
  append(bytes, pack_permissions(acl));
  for (const Acl::Named& each : acl.named) {
    append(bytes, static_cast<uint8_t>(each.permissions | (each.group ? kNamedGroup : 0)));
    append(bytes, each.id);
  }
  return bytes;
}

std::string encode_access_acl(const Acl& acl) {
  Acl kept = acl;
  take_permissions(kept, 0);
  return encode_default_acl(kept);
}

Inherited inherit(const Acl& directory_default, uint32_t mode) {
  Acl acl = directory_default;
  acl.owner &= low_permissions(mode >> 6);
  (acl.mask ? *acl.mask : acl.group) &= low_permissions(mode >> 3);
  acl.other &= low_permissions(mode);
  constexpr uint32_t kPermissions = 0777;
  Inherited out{(mode & ~kPermissions) | permissions_of(acl), {}};
  if (!acl.is_plain()) out.access = std::move(acl);
  return out;
}

}  // namespace streamfs::meta
