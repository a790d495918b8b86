#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/frontend/ops.h"
#include "fuse-fs/frontend/reply.h"

namespace streamfs::frontend {
namespace {

struct Entry {
  std::string name;
  InodeId id;
  uint32_t type;
  off_t next_cookie;
};

bool is_dot_or_dot_dot(const std::string& name) {
  return name == "." || name == "..";
}

// As many entries as fit a reply of `size` bytes, each taking what `room` says. Copied, because
// taking references while the directory is being read would take inode locks out of order.
template <typename Room>
Result<std::vector<Entry>> collect(Context& context, InodeId directory, off_t cookie, size_t size,
                                   Room room) {
  std::vector<Entry> entries;
  size_t used = 0;
  SFS_TRY(context.fs().read_directory(
      directory, static_cast<uint64_t>(cookie), [&](const meta::DirectoryEntry& found) {
        std::string name(found.name);
        used += room(name.c_str());
        if (used > size) return false;
        entries.push_back(
            {std::move(name), found.id, found.type, static_cast<off_t>(found.next_cookie)});
        return true;
      }));
  return entries;
}

struct stat only_type(const Context& context, const Entry& entry) {
  struct stat out{};
  out.st_ino = context.number(entry.id);
  out.st_mode = entry.type;
  return out;
}

// With a reference for each entry but "." and "..". One that was unlinked meanwhile is listed
// without attributes, as plain readdir would.
fuse_entry_param with_reference(Context& context, const Entry& entry) {
  if (!is_dot_or_dot_dot(entry.name)) {
    if (const Result<meta::Attributes> found = context.fs().reference(entry.id)) {
      return to_entry(context, *found);
    }
  }
  fuse_entry_param plain{};
  plain.attr = only_type(context, entry);
  return plain;
}

}  // namespace

namespace op {

void readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie, fuse_file_info* /*file*/) {
  run(req, Wait::kNever, [=](Context& c) {
    const auto entries = collect(c, c.inode(ino), cookie, size, [req](const char* name) {
      return fuse_add_direntry(req, nullptr, 0, name, nullptr, 0);
    });
    if (!entries) return reply_error(req, entries.error());
    std::vector<char> reply(size);
    size_t used = 0;
    for (const Entry& entry : *entries) {
      const struct stat attributes = only_type(c, entry);
      used += fuse_add_direntry(req, reply.data() + used, size - used, entry.name.c_str(),
                                &attributes, entry.next_cookie);
    }
    fuse_reply_buf(req, reply.data(), used);
  });
}

void readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie,
                 fuse_file_info* /*file*/) {
  run(req, Wait::kNever, [=](Context& c) {
    const auto entries = collect(c, c.inode(ino), cookie, size, [req](const char* name) {
      return fuse_add_direntry_plus(req, nullptr, 0, name, nullptr, 0);
    });
    if (!entries) return reply_error(req, entries.error());
    std::vector<char> reply(size);
    std::vector<InodeId> referenced;
    size_t used = 0;
    for (const Entry& entry : *entries) {
      const fuse_entry_param found = with_reference(c, entry);
      if (found.ino != 0) referenced.push_back(entry.id);
      used += fuse_add_direntry_plus(req, reply.data() + used, size - used, entry.name.c_str(),
                                     &found, entry.next_cookie);
    }
    if (fuse_reply_buf(req, reply.data(), used) == 0) return;
    for (const InodeId id : referenced) c.fs().forget(id, 1);
  });
}

void fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, fuse_file_info* file) {
  fsync(req, ino, datasync, file);
}

}  // namespace op
}  // namespace streamfs::frontend
