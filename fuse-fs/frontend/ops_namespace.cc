#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "fuse-fs/frontend/ops.h"
#include "fuse-fs/frontend/reply.h"

namespace streamfs::frontend {
namespace {

meta::Caller caller_of(fuse_req_t req) {
  const fuse_ctx* caller = fuse_req_ctx(req);
  return {caller->uid, caller->gid, caller->umask};
}

data::Requester requester(fuse_req_t req, Context& context) {
  return {caller_of(req), context.comms.comm_of(fuse_req_ctx(req)->pid)};
}

void make(fuse_req_t req, fuse_ino_t parent, std::string name, mode_t mode, dev_t rdev,
          std::string target) {
  run(req,
      [req, parent, name = std::move(name), mode, rdev, target = std::move(target)](Context& c) {
        reply_entry(req, c,
                    c.fs().create(c.inode(parent), name, mode, rdev, target, requester(req, c)));
      });
}

// Answers CREATE and TMPFILE: the entry and an open file.
void reply_created(fuse_req_t req, Context& context, const Result<meta::Attributes>& made,
                   fuse_file_info file) {
  if (!made) return reply_error(req, made.error());
  const fuse_entry_param entry = to_entry(context, *made);
  file.keep_cache = context.settings.direct_io ? 0 : 1;
  file.direct_io = context.settings.direct_io ? 1 : 0;
  if (fuse_reply_create(req, &entry, &file) != 0) context.fs().forget(made->id, 1);
}

// Returns whether a rename replaces a name. The kernel holds both directories meanwhile.
bool replaces(Context& context, InodeId to, std::string_view new_name, unsigned flags) {
  if ((flags & (RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0) return false;
  const Result<meta::Attributes> target = context.fs().lookup(to, new_name);
  if (target) context.fs().forget(target->id, 1);
  return target.ok();
}

// Forgets an inode. Its number may belong to another file after this.
void let_go(Context& context, fuse_ino_t ino, uint64_t count) {
  context.full_disk.forget(context.inode(ino));
  context.fs().forget(context.inode(ino), count);
}

}  // namespace

namespace op {

void lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  run(req, [=](Context& c) {
    const Result<meta::Attributes> found = c.fs().lookup(c.inode(parent), name);
    if (found || found.error().code != ENOENT) return reply_entry(req, c, found);
    fuse_entry_param negative{};
    negative.entry_timeout = kForever;
    fuse_reply_entry(req, &negative);
  });
}

void forget(fuse_req_t req, fuse_ino_t ino, uint64_t count) {
  Context& context = context_of(req);
  let_go(context, ino, count);
  fuse_reply_none(req);
}

void forget_multi(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  Context& context = context_of(req);
  for (const fuse_forget_data& each : std::span(forgets, count)) {
    let_go(context, each.ino, each.nlookup);
  }
  fuse_reply_none(req);
}

void mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev) {
  make(req, parent, name, mode, rdev, {});
}

void mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  make(req, parent, name, (mode & ~static_cast<mode_t>(S_IFMT)) | S_IFDIR, 0, {});
}

void symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  make(req, parent, name, S_IFLNK | 0777, 0, target);
}

void create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
            fuse_file_info* file) {
  run(req, [req, parent, name = std::string(name), mode, file = *file](Context& c) {
    const uint32_t type_and_mode = (mode & ~static_cast<mode_t>(S_IFMT)) | S_IFREG;
    reply_created(req, c,
                  c.fs().create(c.inode(parent), name, type_and_mode, 0, {}, requester(req, c)),
                  file);
  });
}

void tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode, fuse_file_info* file) {
  run(req, [req, parent, mode, file = *file](Context& c) {
    const uint32_t type_and_mode = (mode & ~static_cast<mode_t>(S_IFMT)) | S_IFREG;
    reply_created(req, c, c.fs().create_unnamed(c.inode(parent), type_and_mode, requester(req, c)),
                  file);
  });
}

void link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  run(req, [req, ino, parent, name = std::string(name)](Context& c) {
    reply_entry(req, c, c.fs().link(c.inode(ino), c.inode(parent), name));
  });
}

void unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  run(req, [req, parent, name = std::string(name)](Context& c) {
    reply_status(req, c.fs().unlink(c.inode(parent), name));
  });
}

void rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  run(req, [req, parent, name = std::string(name)](Context& c) {
    reply_status(req, c.fs().rmdir(c.inode(parent), name));
  });
}

void rename(fuse_req_t req, fuse_ino_t from, const char* name, fuse_ino_t to, const char* new_name,
            unsigned flags) {
  Context& context = context_of(req);
  const bool over = replaces(context, context.inode(to), new_name, flags);
  const Start start = over ? Start::kKernel : start_of(Op::kRename, context.settings.names_wait);
  run_from(start, req,
           [req, from, to, flags, name = std::string(name),
            new_name = std::string(new_name)](Context& c) {
             reply_status(req, c.fs().rename(c.inode(from), name, c.inode(to), new_name, flags,
                                             c.push_dirty, caller_of(req)));
           });
}

}  // namespace op
}  // namespace streamfs::frontend
