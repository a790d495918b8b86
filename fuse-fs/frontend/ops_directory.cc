#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/frontend/ops.h"
#include "fuse-fs/frontend/reply.h"

namespace streamfs::frontend {
namespace {

struct Entry {
  size_t name;  // in names, and a zero behind it
  InodeId id;
  uint32_t type;
  off_t next_cookie;
  size_t offset;  // in the reply
};

struct Listing {
  std::vector<Entry> entries;
  std::string names;
  size_t bytes = 0;  // of the reply
  const char* name(const Entry& entry) const { return names.data() + entry.name; }
};

bool is_dot_or_dot_dot(std::string_view name) {
  return name == "." || name == "..";
}

// Returns as many entries as fit a reply of `size` bytes; `room` tells the bytes of each. They are
// copied, because taking references while the directory is being read would take inode locks out of
// order.
template <typename Room>
Result<Listing> collect(Context& context, InodeId directory, off_t cookie, size_t size, Room room) {
  Listing all;
  all.entries.reserve(size / room("names are short"));
  all.names.reserve(size / 4);
  SFS_TRY(context.fs().read_directory(
      directory, static_cast<uint64_t>(cookie), [&](const meta::DirectoryEntry& found) {
        const size_t at = all.names.size();
        all.names.append(found.name).push_back('\0');
        const size_t bytes = room(all.names.data() + at);
        if (all.bytes + bytes > size) return false;
        all.entries.push_back(
            {at, found.id, found.type, static_cast<off_t>(found.next_cookie), all.bytes});
        all.bytes += bytes;
        return true;
      }));
  return all;
}

struct stat only_type(const Context& context, const Entry& entry) {
  struct stat out{};
  out.st_ino = context.number(entry.id);
  out.st_mode = entry.type;
  return out;
}

// A reply to readdirplus. It carries a reference for each entry but "." and "..". An entry that was
// unlinked meanwhile is listed without attributes, as plain readdir would.
class Plus {
 public:
  Plus(fuse_req_t req, Context& context, const Listing& listing)
      : req_(req), context_(context), listing_(listing), reply_(listing.bytes) {
    asked_.reserve(listing.entries.size());
    ids_.reserve(listing.entries.size());
    for (const Entry& entry : listing.entries) {
      if (is_dot_or_dot_dot(listing.name(entry))) {
        put_plain(entry);
      } else {
        asked_.push_back(&entry);
        ids_.push_back(entry.id);
      }
    }
    take_references();
  }

  // Returns whether the kernel took the reply, and the references with it.
  bool send() { return fuse_reply_buf(req_, reply_.data(), reply_.size()) == 0; }

  void give_back() {
    for (const InodeId id : ids_) {
      if (id.value != 0) context_.fs().forget(id, 1);
    }
  }

 private:
  void take_references() {
    std::vector<bool> found(ids_.size());
    context_.fs().reference(ids_, [&](size_t place, const meta::Attributes& attributes) {
      found[place] = true;
      put(*asked_[place], to_entry(context_, attributes));
    });
    for (size_t place = 0; place < ids_.size(); ++place) {
      if (found[place]) continue;
      put_plain(*asked_[place]);
      ids_[place] = {};
    }
  }

  void put_plain(const Entry& entry) {
    fuse_entry_param plain{};
    plain.attr = only_type(context_, entry);
    put(entry, plain);
  }

  void put(const Entry& entry, const fuse_entry_param& found) {
    fuse_add_direntry_plus(req_, reply_.data() + entry.offset, reply_.size() - entry.offset,
                           listing_.name(entry), &found, entry.next_cookie);
  }

  fuse_req_t req_;
  Context& context_;
  const Listing& listing_;
  std::vector<char> reply_;
  std::vector<const Entry*> asked_;
  std::vector<InodeId> ids_;  // of asked_; 0: there is no reference
};

// Prepares the entries that the kernel will ask for next, while it takes in a listing.
void look_ahead(Context& context, InodeId directory, const Listing& listing) {
  if (listing.entries.empty()) return;
  const auto next = static_cast<uint64_t>(listing.entries.back().next_cookie);
  context.fs().look_ahead(directory, next, listing.entries.size());
}

}  // namespace

namespace op {

void readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie, fuse_file_info* /*file*/) {
  run(req, [=](Context& c) {
    const auto listing = collect(c, c.inode(ino), cookie, size, [req](const char* name) {
      return fuse_add_direntry(req, nullptr, 0, name, nullptr, 0);
    });
    if (!listing) return reply_error(req, listing.error());
    std::vector<char> reply(listing->bytes);
    for (const Entry& entry : listing->entries) {
      const struct stat attributes = only_type(c, entry);
      fuse_add_direntry(req, reply.data() + entry.offset, reply.size() - entry.offset,
                        listing->name(entry), &attributes, entry.next_cookie);
    }
    fuse_reply_buf(req, reply.data(), reply.size());
  });
}

void readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie,
                 fuse_file_info* /*file*/) {
  run(req, [=](Context& c) {
    const auto listing = collect(c, c.inode(ino), cookie, size, [req](const char* name) {
      return fuse_add_direntry_plus(req, nullptr, 0, name, nullptr, 0);
    });
    if (!listing) return reply_error(req, listing.error());
    Plus reply(req, c, *listing);
    if (!reply.send()) return reply.give_back();
    look_ahead(c, c.inode(ino), *listing);
  });
}

void fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, fuse_file_info* file) {
  fsync(req, ino, datasync, file);
}

}  // namespace op
}  // namespace streamfs::frontend
