#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/control.h"
#include "fuse-fs/frontend/ops.h"
#include "fuse-fs/frontend/privileges.h"
#include "fuse-fs/frontend/reply.h"
#include "fuse-fs/meta/blob/acl.h"

namespace streamfs::frontend {
namespace {

// Answers a request that asks how long the value is (size 0) or for the value itself.
void reply_value(fuse_req_t req, std::string_view value, size_t size) {
  if (size == 0) {
    fuse_reply_xattr(req, value.size());
  } else if (size < value.size()) {
    fuse_reply_err(req, ERANGE);
  } else {
    fuse_reply_buf(req, value.data(), value.size());
  }
}

// Returns whether this is an ACL that the kernel would not obey. It is refused, because storing it
// would pretend otherwise.
bool is_idle_acl(const Context& context, std::string_view name) {
  return name.starts_with("system.posix_acl_") && !context.acls;
}

// Returns whether a file keeps setgid when this caller sets its access ACL: a caller outside the
// file's group may not keep it. The kernel says so in a flag that libfuse does not pass on. Root
// stands for CAP_FSETID here.
bool keeps_sgid(fuse_req_t req, uint32_t gid) {
  return fuse_req_ctx(req)->uid == 0 || in_group(req, gid);
}

Result<void> set(fuse_req_t req, Context& context, InodeId id, std::string_view name,
                 std::string_view value, int flags) {
  if (name == meta::kAccessAclName) {
    SFS_ASSIGN(const meta::Attributes now, context.fs().attributes(id));
    if (!keeps_sgid(req, now.gid)) flags |= meta::kXattrKillSgid;
  }
  return context.fs().set_xattr(id, name, value, flags);
}

bool is_control(fuse_ino_t ino, std::string_view name) {
  return ino == FUSE_ROOT_ID && name == wire::kControlXattr;
}

// Returns only the number of a context to users who do not own the mount: its name tells which
// program made the file, and in which directory.
Result<std::string> get(fuse_req_t req, data::Filesystem& fs, InodeId id, std::string_view name) {
  const uid_t caller = fuse_req_ctx(req)->uid;
  if (name != wire::kVStreamXattr || owns_mount(caller)) return fs.get_xattr(id, name);
  SFS_ASSIGN(const data::HintReply label, fs.hint_query(id));
  SFS_ASSIGN(const meta::Attributes file, fs.attributes(id));
  if (!label.of_context || file.uid == caller) return fs.get_xattr(id, name);
  return std::to_string(label.vstream.value);
}

// Returns whether the name is reserved but unknown. A misspelt name must not seem to succeed.
bool is_unknown_of_ours(std::string_view name) {
  return name.starts_with(wire::kReservedXattrs) && name != wire::kVStreamXattr;
}

// Returns the error for an attribute that may not be set or removed, else 0.
int refusal(const Context& context, fuse_ino_t ino, std::string_view name) {
  if (is_idle_acl(context, name)) return EOPNOTSUPP;
  return is_control(ino, name) ? EPERM : 0;
}

}  // namespace

namespace op {

void getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, size_t size) {
  run(req, [=](Context& c) {
    if (is_idle_acl(c, name)) return reply_error(req, EOPNOTSUPP);
    if (is_control(ino, name) && !c.settings.control_path.empty()) {
      return reply_value(req, c.settings.control_path, size);
    }
    const Result<std::string> value = get(req, c.fs(), c.inode(ino), name);
    if (!value) return reply_error(req, value.error());
    reply_value(req, *value, size);
  });
}

void setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value, size_t size,
              int flags) {
  if (const int refused = refusal(context_of(req), ino, name)) return reply_error(req, refused);
  if (is_unknown_of_ours(name)) return reply_error(req, EOPNOTSUPP);
  run(req, [req, ino, name = std::string(name), value = std::string(value, size), flags](
               Context& c) { reply_status(req, set(req, c, c.inode(ino), name, value, flags)); });
}

void listxattr(fuse_req_t req, fuse_ino_t ino, size_t size) {
  run(req, [=](Context& c) {
    const auto names = c.fs().list_xattr(c.inode(ino));
    if (!names) return reply_error(req, names.error());
    // As on local filesystems, only root sees trusted.*.
    const bool all = fuse_req_ctx(req)->uid == 0;
    std::string joined;
    for (const std::string& name : *names) {
      if (all || !name.starts_with("trusted.")) joined.append(name).push_back('\0');
    }
    reply_value(req, joined, size);
  });
}

void removexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  if (const int refused = refusal(context_of(req), ino, name)) return reply_error(req, refused);
  run(req, [req, ino, name = std::string(name)](Context& c) {
    reply_status(req, c.fs().remove_xattr(c.inode(ino), name));
  });
}

}  // namespace op
}  // namespace streamfs::frontend
