#include "fuse-fs/frontend/reply.h"

#include <fcntl.h>
#include <spdlog/common.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/clock.h"
#include "base/event.h"
#include "base/result.h"
#include "base/types.h"
#include "base/waiting.h"
#include "fuse-fs/frontend/privileges.h"

namespace streamfs::frontend {
namespace {

timespec to_timespec(Timestamp time) {
  return {.tv_sec = time.seconds, .tv_nsec = static_cast<long>(time.nanoseconds)};
}

// Returns the sectors of a file. A regular file never has 0: the kernel may hold dirty pages that
// the server does not know of, and tar takes 0 for "all hole".
blkcnt_t sectors(const meta::Attributes& attributes) {
  const auto known = static_cast<blkcnt_t>(attributes.blocks * (kBlockSize / 512));
  return S_ISREG(attributes.mode) ? std::max<blkcnt_t>(known, 1) : known;
}

}  // namespace

double attributes_timeout(const Context& context, const meta::Attributes& attributes) {
  return is_privileged(attributes) || context.full_disk.is_losing(attributes.id) ? 0 : kForever;
}

struct stat to_stat(const Context& context, const meta::Attributes& attributes) {
  struct stat out{};
  out.st_ino = context.number(attributes.id);
  out.st_mode = attributes.mode;
  out.st_nlink = attributes.nlink;
  out.st_uid = attributes.uid;
  out.st_gid = attributes.gid;
  out.st_rdev = attributes.rdev;
  out.st_size = static_cast<off_t>(attributes.size);
  out.st_blksize = static_cast<blksize_t>(kBlockSize);
  out.st_blocks = sectors(attributes);
  out.st_atim = to_timespec(attributes.atime);
  out.st_mtim = to_timespec(attributes.mtime);
  out.st_ctim = to_timespec(attributes.ctime);
  return out;
}

fuse_entry_param to_entry(const Context& context, const meta::Attributes& attributes) {
  fuse_entry_param entry{};
  entry.ino = context.number(attributes.id);
  entry.generation = attributes.generation;
  entry.attr = to_stat(context, attributes);
  entry.attr_timeout = attributes_timeout(context, attributes);
  entry.entry_timeout = kForever;
  return entry;
}

void reply_error(fuse_req_t req, const Error& error) {
  if (is_would_wait(error)) return hand_off();
  if (error.code == EIO || error.code == EUCLEAN)
    log_event(Event::kIoError, spdlog::level::err, error.message());
  fuse_reply_err(req, error.code);
}

void reply_status(fuse_req_t req, const Result<void>& done) {
  if (!done) return reply_error(req, done.error());
  fuse_reply_err(req, 0);
}

void reply_entry(fuse_req_t req, Context& context, const Result<meta::Attributes>& found) {
  if (!found) return reply_error(req, found.error());
  const fuse_entry_param entry = to_entry(context, *found);
  if (fuse_reply_entry(req, &entry) != 0) context.fs().forget(found->id, 1);
}

void reply_attributes(fuse_req_t req, const Context& context,
                      const Result<meta::Attributes>& found) {
  if (!found) return reply_error(req, found.error());
  const struct stat attributes = to_stat(context, *found);
  fuse_reply_attr(req, &attributes, attributes_timeout(context, *found));
}

}  // namespace streamfs::frontend
