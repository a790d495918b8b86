#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/frontend/ops.h"
#include "fuse-fs/frontend/privileges.h"
#include "fuse-fs/frontend/reply.h"

namespace streamfs::frontend {
namespace {

constexpr int kKillPrivileges = 1 << 11;  // FATTR_KILL_SUIDGID, of HANDLE_KILLPRIV_V2
constexpr int kSettable = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID |
                          FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME |
                          FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW | FUSE_SET_ATTR_CTIME |
                          kKillPrivileges;

Timestamp to_timestamp(const timespec& time) {
  return {time.tv_sec, static_cast<uint32_t>(time.tv_nsec)};
}

// Returns whether a SETATTR clears setuid and setgid. A chown always does; a truncate does if the
// kernel says so. Before a write(2) or fallocate(2) that must clear them, the kernel sends a
// SETATTR without fields (file_remove_privs()).
bool loses_privileges(int to_set) {
  constexpr int kTaking = FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID | kKillPrivileges;
  return (to_set & kSettable) == 0 || (to_set & kTaking) != 0;
}

meta::AttributeChange decode(const struct stat& wanted, int to_set, Timestamp now) {
  meta::AttributeChange change;
  const auto has = [to_set](int flag) { return (to_set & flag) != 0; };
  if (has(FUSE_SET_ATTR_MODE)) change.mode = wanted.st_mode & 07777;
  if (has(FUSE_SET_ATTR_UID)) change.uid = wanted.st_uid;
  if (has(FUSE_SET_ATTR_GID)) change.gid = wanted.st_gid;
  if (has(FUSE_SET_ATTR_ATIME)) change.atime = to_timestamp(wanted.st_atim);
  if (has(FUSE_SET_ATTR_MTIME)) change.mtime = to_timestamp(wanted.st_mtim);
  if (has(FUSE_SET_ATTR_ATIME_NOW)) change.atime = now;
  if (has(FUSE_SET_ATTR_MTIME_NOW)) change.mtime = now;
  // With the writeback cache the kernel keeps a regular file's ctime and sends it along.
  change.ctime = has(FUSE_SET_ATTR_CTIME) ? to_timestamp(wanted.st_ctim) : now;
  return change;
}

// With the writeback cache the kernel keeps a file's times and sends them after each rename, unlink
// and write, and the caller waits for that too. They become durable with the next commit.
bool only_kernel_times(int to_set) {
  constexpr int kTimes = FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_CTIME;
  return (to_set & kSettable) == kTimes;
}

// Returns whether nothing is left to do once the size is changed.
bool only_size(int to_set) {
  return (to_set & kSettable) == FUSE_SET_ATTR_SIZE;
}

Result<meta::Attributes> apply(fuse_req_t req, Context& context, InodeId id,
                               const struct stat& wanted, int to_set) {
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
    SFS_TRY(context.fs().truncate(id, static_cast<uint64_t>(wanted.st_size)));
    context.full_disk.forget(id);
  }
  if (only_size(to_set)) return context.fs().attributes(id);
  meta::AttributeChange change = decode(wanted, to_set, context.clock.now());
  change.lazily = only_kernel_times(to_set);
  if (loses_privileges(to_set)) {
    SFS_ASSIGN(const meta::Attributes before, context.fs().attributes(id));
    if ((to_set & kSettable) == 0 && !is_privileged(before)) return before;
    if (S_ISREG(before.mode) && !change.mode) take_privileges(req, before, change);
  }
  return context.fs().set_attributes(id, change);
}

// Returns whether a GETATTR comes from write(2), which alone asks with a handle. fstat(2) has none
// (fuse_getattr() in fs/fuse/dir.c). A read past the end asks for the size, which the kernel knows
// unless the attributes expire soon, as those of a setuid or setgid file may.
bool is_asked_by_writer(const fuse_file_info* file, uint32_t mode) {
  return file != nullptr && S_ISREG(mode) && (mode & (S_ISUID | S_ISGID)) == 0;
}

}  // namespace

namespace op {

void getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info* file) {
  run(req, [=](Context& c) {
    const Result<meta::Attributes> found = c.fs().attributes(c.inode(ino));
    if (found && is_asked_by_writer(file, found->mode) && c.full_disk.ask(found->id)) {
      fuse_reply_err(req, ENOSPC);
      return;
    }
    reply_attributes(req, c, found);
  });
}

void setattr(fuse_req_t req, fuse_ino_t ino, struct stat* wanted, int to_set,
             fuse_file_info* /*file*/) {
  run(req, [req, ino, to_set, wanted = *wanted](Context& c) {
    reply_attributes(req, c, apply(req, c, c.inode(ino), wanted, to_set));
  });
}

void readlink(fuse_req_t req, fuse_ino_t ino) {
  run(req, [=](Context& c) {
    const Result<std::string> target = c.fs().read_symlink(c.inode(ino));
    if (!target) return reply_error(req, target.error());
    fuse_reply_readlink(req, target->c_str());
  });
}

#if FUSE_VERSION >= 318
namespace {

statx_timestamp to_statx_time(Timestamp time) {
  statx_timestamp out{};
  out.tv_sec = time.seconds;
  out.tv_nsec = time.nanoseconds;
  return out;
}

struct statx to_statx(const Context& context, const meta::Attributes& attributes) {
  const struct stat plain = to_stat(context, attributes);
  struct statx out{};
  out.stx_mask = STATX_BASIC_STATS | STATX_BTIME;
  out.stx_blksize = static_cast<uint32_t>(plain.st_blksize);
  out.stx_nlink = attributes.nlink;
  out.stx_uid = attributes.uid;
  out.stx_gid = attributes.gid;
  out.stx_mode = static_cast<uint16_t>(attributes.mode);
  out.stx_ino = plain.st_ino;
  out.stx_size = attributes.size;
  out.stx_blocks = static_cast<uint64_t>(plain.st_blocks);
  out.stx_atime = to_statx_time(attributes.atime);
  out.stx_btime = to_statx_time(attributes.btime);
  out.stx_ctime = to_statx_time(attributes.ctime);
  out.stx_mtime = to_statx_time(attributes.mtime);
  out.stx_rdev_major = major(attributes.rdev);
  out.stx_rdev_minor = minor(attributes.rdev);
  return out;
}

}  // namespace

void statx(fuse_req_t req, fuse_ino_t ino, int /*flags*/, int /*mask*/, fuse_file_info* /*file*/) {
  run(req, [=](Context& c) {
    const Result<meta::Attributes> found = c.fs().attributes(c.inode(ino));
    if (!found) return reply_error(req, found.error());
    struct statx out = to_statx(c, *found);
    fuse_reply_statx(req, 0, &out, attributes_timeout(c, *found));
  });
}
#endif

}  // namespace op
}  // namespace streamfs::frontend
