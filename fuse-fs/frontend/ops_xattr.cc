#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/wire/control.h"
#include "fuse-fs/frontend/ops.h"
#include "fuse-fs/frontend/reply.h"

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

// ACLs would be stored but not obeyed: refused rather than pretended.
bool is_acl(std::string_view name) {
  return name.starts_with("system.posix_acl_");
}

bool is_control(fuse_ino_t ino, std::string_view name) {
  return ino == FUSE_ROOT_ID && name == wire::kControlXattr;
}

// A slip in the name of an attribute of ours must not pass for success.
bool is_unknown_of_ours(std::string_view name) {
  return name.starts_with(wire::kReservedXattrs) && name != wire::kVStreamXattr;
}

// What may not be set or removed.
int refusal(fuse_ino_t ino, std::string_view name) {
  if (is_acl(name)) return EOPNOTSUPP;
  return is_control(ino, name) ? EPERM : 0;
}

}  // namespace

namespace op {

void getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, size_t size) {
  run(req, Wait::kNever, [=](Context& c) {
    if (is_acl(name)) return reply_error(req, EOPNOTSUPP);
    if (is_control(ino, name) && !c.settings.control_path.empty()) {
      return reply_value(req, c.settings.control_path, size);
    }
    const Result<std::string> value = c.fs().get_xattr(c.inode(ino), name);
    if (!value) return reply_error(req, value.error());
    reply_value(req, *value, size);
  });
}

void setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value, size_t size,
              int flags) {
  if (const int refused = refusal(ino, name)) return reply_error(req, refused);
  if (is_unknown_of_ours(name)) return reply_error(req, EOPNOTSUPP);
  run(req, context_of(req).names(),
      [req, ino, name = std::string(name), value = std::string(value, size), flags](Context& c) {
        reply_status(req, c.fs().set_xattr(c.inode(ino), name, value, flags));
      });
}

void listxattr(fuse_req_t req, fuse_ino_t ino, size_t size) {
  run(req, Wait::kNever, [=](Context& c) {
    const auto names = c.fs().list_xattr(c.inode(ino));
    if (!names) return reply_error(req, names.error());
    std::string joined;
    for (const std::string& name : *names) joined.append(name).push_back('\0');
    reply_value(req, joined, size);
  });
}

void removexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  if (const int refused = refusal(ino, name)) return reply_error(req, refused);
  run(req, context_of(req).names(), [req, ino, name = std::string(name)](Context& c) {
    reply_status(req, c.fs().remove_xattr(c.inode(ino), name));
  });
}

}  // namespace op
}  // namespace streamfs::frontend
