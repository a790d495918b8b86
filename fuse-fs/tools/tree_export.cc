#include "fuse-fs/tools/tree_export.h"

#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/buffer.h"
#include "fuse-fs/data/filesystem.h"
#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/tools/archive_writer.h"

namespace streamfs::tools {
namespace {

constexpr uint64_t kPieceBytes = 1024 * 1024;

// Returns whether the target has no room or is gone, so that the next file would fail as well.
bool is_the_end(const Error& error) {
  return error.code == ENOSPC || error.code == EDQUOT || error.code == EPIPE || error.code == EROFS;
}

// Returns the names in a path from the root on, without empty ones and ".".
Result<std::vector<std::string>> names_in(const std::string& path) {
  std::vector<std::string> out;
  for (size_t at = 0; at < path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string name = path.substr(at, slash - at);
    at = slash + 1;
    if (name == "..") return Error{EINVAL, path + ": a path without .. is needed"};
    if (!name.empty() && name != ".") out.push_back(name);
  }
  return out;
}

// Drops each path below another one, because the export takes that one whole. In sorted order, the
// paths below a path follow it directly.
Result<std::vector<std::vector<std::string>>> apart(const std::vector<std::string>& paths) {
  std::vector<std::vector<std::string>> all, out;
  for (const std::string& path : paths) {
    SFS_ASSIGN(std::vector<std::string> names, names_in(path));
    all.push_back(std::move(names));
  }
  std::ranges::sort(all);
  for (auto& names : all) {
    const bool inside = !out.empty() && out.back().size() <= names.size() &&
                        std::equal(out.back().begin(), out.back().end(), names.begin());
    if (!inside) out.push_back(std::move(names));
  }
  return out;
}

class Export {
 public:
  Export(data::Filesystem& fs, ArchiveWriter& out, ExportReport& report,
         const std::function<void(const ExportReport&)>& progress)
      : fs_(fs), out_(out), progress_(progress), report_(report) {}

  Result<void> take(const std::vector<std::string>& names);

 private:
  struct Place {
    std::string path;
    InodeId id;
  };
  Result<void> drain();
  Result<void> one(const Place& place);
  Result<void> write(ExportedEntry& entry);
  Result<void> write_new(ExportedEntry& entry, InodeId id);
  Result<void> describe(ExportedEntry& entry, InodeId id);
  Result<void> find_data(ExportedEntry& entry, InodeId id);
  Result<void> each_piece(const ExportedEntry& entry, InodeId id,
                          const std::function<Result<void>(uint64_t, ConstBytes)>& visit);
  Result<void> list(const Place& place);
  void damaged(const std::string& path, const Error& error) {
    report_.damaged.push_back({path.empty() ? "/" : path, error.message()});
  }
  void count(const ExportedEntry& entry);

  data::Filesystem& fs_;
  ArchiveWriter& out_;
  const std::function<void(const ExportReport&)>& progress_;
  ExportReport& report_;
  std::vector<Place> pending_;             // a stack
  std::map<InodeId, std::string> linked_;  // where an inode with several names was written
  std::set<std::string> written_;          // directories above the paths asked for
};

// Takes a path with everything below it. Directories above it are taken without other content.
Result<void> Export::take(const std::vector<std::string>& names) {
  InodeId at = fs_.root();
  std::string so_far;
  for (const std::string& name : names) {
    const auto next = fs_.lookup(at, name);
    if (!next.ok()) return Error{next.error().code, so_far.append("/").append(name)};
    if (!so_far.empty() && written_.insert(so_far).second) {
      SFS_TRY(one({so_far, at}));
      pending_.clear();  // its other content was not asked for
    }
    so_far += (so_far.empty() ? "" : "/") + name;
    at = next->id;
  }
  pending_.push_back({so_far, at});
  return drain();
}

Result<void> Export::drain() {
  while (!pending_.empty()) {
    const Place next = std::move(pending_.back());
    pending_.pop_back();
    SFS_TRY(one(next));
  }
  return {};
}

Result<void> Export::one(const Place& place) {
  bool held = false;
  fs_.reference({&place.id, 1}, [&](size_t, const meta::Attributes&) { held = true; });
  const auto attributes = fs_.attributes(place.id);
  if (!attributes.ok()) {
    if (held) fs_.forget(place.id, 1);
    damaged(place.path, attributes.error());
    return {};
  }
  ExportedEntry entry;
  entry.path = place.path.empty() ? "." : place.path;
  entry.attributes = *attributes;
  const Result<void> done = write_new(entry, place.id);
  if (done.ok() && S_ISDIR(attributes->mode)) {
    if (const Result<void> listed = list(place); !listed.ok()) damaged(place.path, listed.error());
  }
  if (held) fs_.forget(place.id, 1);
  progress_(report_);
  return done;
}

// Pushes the names of a directory so that the stack gives them out in order.
Result<void> Export::list(const Place& place) {
  std::vector<Place> found;
  const Result<void> done = fs_.read_directory(place.id, 0, [&](const meta::DirectoryEntry& entry) {
    if (entry.name == "." || entry.name == "..") return true;
    const std::string above = place.path.empty() ? "" : place.path + "/";
    found.push_back({above + std::string(entry.name), entry.id});
    return true;
  });
  std::ranges::sort(found, [](const Place& a, const Place& b) { return a.path > b.path; });
  std::ranges::move(found, std::back_inserter(pending_));
  return done;
}

Result<void> Export::write_new(ExportedEntry& entry, InodeId id) {
  const meta::Attributes& attributes = entry.attributes;
  if (S_ISSOCK(attributes.mode)) return {};  // no process listens on it any more
  const bool several = attributes.nlink > 1 && !S_ISDIR(attributes.mode);
  if (const auto before = linked_.find(id); several && before != linked_.end()) {
    entry.hard_link = before->second;
    return write(entry);
  }
  Result<void> known = describe(entry, id);
  if (known.ok() && S_ISREG(attributes.mode)) known = find_data(entry, id);
  // An archive's header promises the bytes, so they are read once before.
  if (known.ok() && out_.is_archive())
    known = each_piece(entry, id, [](uint64_t, ConstBytes) { return Result<void>(); });
  if (!known.ok()) {
    damaged(entry.path, known.error());
    return {};
  }
  const uint64_t refused = report_.not_written.size() + report_.damaged.size();
  SFS_TRY(write(entry));
  if (several && refused == report_.not_written.size() + report_.damaged.size())
    linked_[id] = entry.path;
  return {};
}

Result<void> Export::describe(ExportedEntry& entry, InodeId id) {
  if (S_ISLNK(entry.attributes.mode)) {
    SFS_ASSIGN(entry.symlink, fs_.read_symlink(id));
  }
  SFS_ASSIGN(const auto names, fs_.list_xattr(id));
  for (const std::string& name : names) {
    SFS_ASSIGN(std::string value, fs_.get_xattr(id, name));
    const bool access = name == meta::kAccessAclName;
    if (!access && name != meta::kDefaultAclName) {
      entry.xattrs.emplace_back(name, std::move(value));
      continue;
    }
    SFS_ASSIGN((access ? entry.access_acl : entry.default_acl), meta::parse_acl(value));
  }
  return {};
}

Result<void> Export::find_data(ExportedEntry& entry, InodeId id) {
  const uint64_t size = entry.attributes.size;
  for (uint64_t at = 0; at < size;) {
    const auto begin = fs_.seek(id, at, SEEK_DATA);
    if (!begin.ok() && begin.error().code == ENXIO) break;  // holes only
    SFS_TRY(begin);
    SFS_ASSIGN(const uint64_t end, fs_.seek(id, *begin, SEEK_HOLE));
    const uint64_t stop = std::min(end, size);
    if (stop <= *begin) break;
    entry.data.emplace_back(*begin, stop - *begin);
    at = stop;
  }
  return {};
}

Result<void> Export::each_piece(const ExportedEntry& entry, InodeId id,
                                const std::function<Result<void>(uint64_t, ConstBytes)>& visit) {
  for (const auto& [offset, length] : entry.data) {
    for (uint64_t at = offset; at < offset + length;) {
      const Bytes room = blockdev::scratch(kPieceBytes);
      SFS_ASSIGN(const size_t got, fs_.read(id, at, room));
      if (got == 0) return Error{EIO, "ends early"};
      const size_t use = std::min<uint64_t>(got, offset + length - at);
      SFS_TRY(visit(at, room.first(use)));
      at += use;
    }
  }
  return {};
}

void Export::count(const ExportedEntry& entry) {
  const uint32_t mode = entry.attributes.mode;
  ++(!entry.hard_link.empty() ? report_.hard_links
     : S_ISREG(mode)          ? report_.files
     : S_ISDIR(mode)          ? report_.directories
                              : report_.others);
}

Result<void> Export::write(ExportedEntry& entry) {
  const auto refused = [&](const Error& error) -> Result<void> {
    report_.not_written.push_back({entry.path, error.message()});
    return is_the_end(error) ? Result<void>(error) : Result<void>();
  };
  auto begun = out_.begin(entry);
  if (!begun.ok()) return refused(begun.error());
  std::optional<Error> target;  // set if the target failed, not the file that is read
  const bool has_data = entry.hard_link.empty() && S_ISREG(entry.attributes.mode);
  Result<void> copied;
  if (has_data) {
    copied = each_piece(entry, entry.attributes.id, [&](uint64_t offset, ConstBytes bytes) {
      Result<void> done = out_.data(offset, bytes);
      if (!done.ok()) target = done.error();
      report_.bytes += bytes.size();
      return done;
    });
  }
  if (!copied.ok()) {
    out_.give_up(entry.path);
    if (target) return refused(*target);
    damaged(entry.path, copied.error());
    return {};
  }
  auto ended = out_.end();
  if (!ended.ok()) return refused(ended.error());
  count(entry);
  for (const auto& lacking : {*begun, *ended})
    if (lacking) report_.not_whole.push_back({entry.path, *lacking});
  return {};
}

}  // namespace

Result<void> export_tree(data::Filesystem& fs, const std::vector<std::string>& paths,
                         ArchiveWriter& out, ExportReport& report,
                         const std::function<void(const ExportReport&)>& progress) {
  Export work(fs, out, report, progress);
  SFS_ASSIGN(const auto wanted, apart(paths.empty() ? std::vector<std::string>{"/"} : paths));
  for (const auto& names : wanted) SFS_TRY(work.take(names));
  return out.finish();
}

}  // namespace streamfs::tools
