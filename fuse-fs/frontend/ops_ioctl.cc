#include <string.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/result.h"
#include "base/types.h"
#include "base/wire/hint_ioctl.h"
#include "fuse-fs/frontend/ops.h"
#include "fuse-fs/frontend/privileges.h"
#include "fuse-fs/frontend/reply.h"

namespace streamfs::frontend {
namespace {

std::string_view name_of(const streamfs_hint& hint) {
  return {hint.name, strnlen(hint.name, sizeof hint.name)};
}

data::HintReply device_reply(const data::HintDevice& device) {
  data::HintReply reply;
  reply.vstream = VStreamId{static_cast<uint16_t>(device.ignored ? 0 : 1)};
  reply.pstream = PStreamId{device.pstream_count};
  reply.name = device.mechanism;
  return reply;
}

bool changes(const streamfs_hint& hint) {
  return hint.command != STREAMFS_HINT_QUERY && hint.command != STREAMFS_HINT_VSTREAM &&
         hint.command != STREAMFS_HINT_DEVICE;
}

Result<data::HintReply> obey(data::Filesystem& fs, InodeId id, const streamfs_hint& hint) {
  if (hint.version != STREAMFS_HINT_VERSION) return Error{EINVAL, "version of a hint"};
  switch (hint.command) {
    case STREAMFS_HINT_QUERY:
      return fs.hint_query(id);
    case STREAMFS_HINT_NUMBER:
      return fs.hint_number(id, hint.number);
    case STREAMFS_HINT_NAME:
      return fs.hint_name(id, name_of(hint));
    case STREAMFS_HINT_RW_HINT:
      return fs.hint_rw(id, hint.rw_hint);
    case STREAMFS_HINT_CLEAR:
      return fs.hint_clear(id);
    case STREAMFS_HINT_VSTREAM:
      return fs.find_vstream(name_of(hint), hint.number);
    case STREAMFS_HINT_DEVICE:
      return device_reply(fs.hint_device());
    default:
      return Error{EINVAL, "command of a hint"};
  }
}

// A user who may write a file may label it, and so may its owner, who may have made it read-only
// before writing. The kernel does not check ioctls.
Result<void> may_label(fuse_req_t req, data::Filesystem& fs, InodeId id) {
  SFS_ASSIGN(const meta::Attributes file, fs.attributes(id));
  const fuse_ctx& caller = *fuse_req_ctx(req);
  if (caller.uid == 0 || caller.uid == file.uid) return {};
  const uint32_t writable = in_group(req, file.gid) ? 0020 : 0002;
  if ((file.mode & writable) != 0) return {};
  return Error{EACCES, "only who may write a file may label it"};
}

// Returns the part of a reply that the caller may see. A label that a program or a rule gave is
// visible to all users who can open the file. A context's name, and a name found by its number if
// it is not built-in, could tell about files that are closed to the caller.
Result<data::HintReply> shown_to(fuse_req_t req, data::Filesystem& fs, InodeId id,
                                 const streamfs_hint& asked, data::HintReply reply) {
  const uid_t caller = fuse_req_ctx(req)->uid;
  if (owns_mount(caller)) return reply;
  if (asked.command == STREAMFS_HINT_VSTREAM) {
    const bool by_name = !name_of(asked).empty();
    if (by_name && reply.of_context) return Error{ENOENT, "no such vStream"};
    if (!by_name && !reply.built_in) reply.name.clear();
  } else if (reply.of_context) {
    SFS_ASSIGN(const meta::Attributes file, fs.attributes(id));
    if (file.uid != caller) reply.name.clear();
  }
  return reply;
}

void fill_in(streamfs_hint& hint, const data::HintReply& now) {
  hint.number = now.vstream.value;
  hint.pstream = now.pstream.value;
  hint.lifetime_bytes = now.lifetime_bytes;
  std::memset(hint.name, 0, sizeof hint.name);
  std::memcpy(hint.name, now.name.data(), std::min(now.name.size(), sizeof hint.name));
}

}  // namespace

void op::ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void* /*argument*/,
               fuse_file_info* /*file*/, unsigned /*flags*/, const void* in, size_t in_size,
               size_t out_size) {
  if (command != STREAMFS_IOC_HINT) return reply_error(req, ENOTTY);
  streamfs_hint asked{};
  if (in_size < sizeof asked || out_size < sizeof asked) return reply_error(req, EINVAL);
  std::memcpy(&asked, in, sizeof asked);
  run(req, [req, ino, asked](Context& c) {
    streamfs_hint hint = asked;
    if (changes(hint)) {
      const Result<void> allowed = may_label(req, c.fs(), c.inode(ino));
      if (!allowed.ok()) return reply_error(req, allowed.error());
    }
    Result<data::HintReply> now = obey(c.fs(), c.inode(ino), hint);
    if (now) now = shown_to(req, c.fs(), c.inode(ino), hint, *now);
    if (!now) return reply_error(req, now.error());
    fill_in(hint, *now);
    fuse_reply_ioctl(req, 0, &hint, sizeof hint);
  });
}

}  // namespace streamfs::frontend
