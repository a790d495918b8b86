#include "fuse-fs/tools/streamctl_hint.h"

#include <fmt/format.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/table.h"
#include "base/wire/control.h"
#include "fuse-fs/tools/failure.h"
#include "fuse-fs/tools/output.h"
#include "libstream/include/libstream.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

std::string_view kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "a device";
}

// Turns libstream's result into an error with a sentence.
Result<void> result_of(const std::string& path, int result) {
  if (result == STREAM_HONOURED) return {};
  if (result > 0) return Error{EMEDIUMTYPE, path + " is not on a streamfs"};
  switch (-result) {
    case EOPNOTSUPP:
      return Error{EOPNOTSUPP, path + ": its mount takes no labels (placement=learned or off)"};
    case ECONNABORTED:  // over io_uring, for a moment after the mount daemon was killed
    case ENOTCONN:
      return Error{ENOTCONN, path + ": the filesystem that was mounted there is gone"};
    case ENOSYS:
      return Error{ENOSYS, path + ": its filesystem is older than this program"};
    default:
      return Error{-result, path};
  }
}

// Returns whether a user or program set the label, rather than rules or learning.
bool is_said(const std::string& path) {
  std::vector<char> names(65536);
  const ssize_t length = listxattr(path.c_str(), names.data(), names.size());
  const std::string_view all(names.data(), length > 0 ? static_cast<size_t>(length) : 0);
  for (size_t at = 0; at < all.size(); at = all.find('\0', at) + 1) {
    if (all.substr(at, all.find('\0', at) - at) == wire::kVStreamXattr) return true;
  }
  return false;
}

struct Labelled {
  std::string path;
  bool directory = false, said = false;
  stream_info info{};
};

Result<Labelled> look_at(const std::string& path, bool directory) {
  Labelled out{path, directory, is_said(path), {}};
  SFS_TRY(result_of(path, stream_query_path(path.c_str(), &out.info)));
  return out;
}

std::string label_of(const stream_info& info) {
  if (info.name[0] != '\0') return printable(info.name);
  return info.vstream == 0 ? "-" : std::to_string(info.vstream);
}

std::string lifetime_of(const stream_info& info, const Style& style) {
  return info.lifetime_bytes == 0 ? "not known yet" : bytes_text(info.lifetime_bytes, style);
}

void print_row(const Labelled& one) {
  const json row = {{"path", one.path},
                    {"directory", one.directory},
                    {"said", one.said},
                    {"vstream", one.info.vstream},
                    {"name", std::string(one.info.name)},
                    {"pstream", one.info.pstream},
                    {"lifetime_bytes", one.info.lifetime_bytes}};
  print_json(row, Lines::kOne);
}

void print_shown(const Labelled& one, const Style& style) {
  const std::string name = printable(one.info.name);
  fmt::print("{}: vStream {}{}{}, pStream {}, lifetime {}\n", printable(one.path), one.info.vstream,
             name.empty() ? "" : " ", name, one.info.pstream, lifetime_of(one.info, style));
}

void print_listed(const Labelled& one, const Style& style) {
  const bool inherited = one.directory && one.said;
  fmt::print("{}{} {:<31} {:>13} {}\n", one.said ? 's' : '-', inherited ? 'd' : '-',
             label_of(one.info), lifetime_of(one.info, style), printable(one.path));
}

class Walk {
 public:
  explicit Walk(const HintArguments& arguments) : arguments_(arguments) {}

  Result<void> run() {
    if (!arguments_.name.empty()) {
      const int wrong = stream_open(&stream_, arguments_.name.c_str());
      if (wrong != 0) return Error{-wrong, "'" + arguments_.name + "' cannot name a vStream"};
    } else if (arguments_.number != 0) {
      const int wrong = stream_open_number(&stream_, arguments_.number);
      if (wrong != 0) return Error{-wrong, "a vStream is a number 1..65535"};
    }
    for (const std::string& path : arguments_.paths) walk(path);
    if (failed_) return *failed_;
    return {};
  }

 private:
  bool changes() const {
    return arguments_.clear || arguments_.number != 0 || !arguments_.name.empty();
  }

  // Prints the error that was kept, and keeps this one.
  void note(Error error) {
    if (failed_) fail("streamctl", *failed_);
    failed_ = std::move(error);
  }

  void note(const Result<void>& result) {
    if (!result) note(result.error());
  }

  // Follows symbolic links on the command line, but not those below them.
  void walk(const std::string& path) {
    std::string root = path;
    char* const roots[] = {root.data(), nullptr};
    FTS* tree =
        fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR | FTS_XDEV,
                 [](auto a, auto b) { return std::strcmp((*a)->fts_name, (*b)->fts_name); });
    if (tree == nullptr) return note(result_of(path, -errno));
    changed_ = 0;
    errno = 0;
    while (FTSENT* entry = fts_read(tree)) visit(tree, entry);
    if (errno != 0) note(result_of(path, -errno));
    fts_close(tree);
    if (changes() && arguments_.recursive && !arguments_.style.json) {
      fmt::print("{}: {} files and directories {}\n", printable(path), changed_,
                 arguments_.clear ? "cleared" : "labelled");
    }
  }

  void visit(FTS* tree, FTSENT* entry) {
    switch (entry->fts_info) {
      case FTS_DP:
        return;
      case FTS_D:
        return enter(tree, entry);
      case FTS_F:
        if (!is_hidden(entry)) one(entry->fts_path, false);
        return;
      case FTS_DNR:
      case FTS_ERR:
      case FTS_NS:
        return note(result_of(entry->fts_path, -entry->fts_errno));
      default:
        return refuse(entry);
    }
  }

  // Visits a directory. Its content is skipped unless the tree or a listing goes on there. fts
  // still gives the root of another mount, which is left out.
  void enter(FTS* tree, FTSENT* entry) {
    if (entry->fts_level == 0) device_ = entry->fts_statp->st_dev;
    if (entry->fts_statp->st_dev != device_) return;
    const bool hidden = is_hidden(entry);
    const bool opens = arguments_.list && !arguments_.directory && entry->fts_level == 0;
    if (hidden || (!arguments_.recursive && !opens)) fts_set(tree, entry, FTS_SKIP);
    if (!hidden && !opens) one(entry->fts_path, true);
  }

  bool is_hidden(const FTSENT* entry) const {
    return arguments_.list && !arguments_.all && entry->fts_level > 0 && entry->fts_name[0] == '.';
  }

  // Reports a file without label, if it was named on the command line. Others are passed over.
  void refuse(const FTSENT* entry) {
    if (entry->fts_level > 0) return;
    if (entry->fts_info == FTS_SLNONE) return note(Error{ENOENT, entry->fts_path});
    note(Error{EMEDIUMTYPE, fmt::format("{} is {}: only files and directories have labels",
                                        entry->fts_path, kind_of(entry->fts_statp->st_mode))});
  }

  void one(const std::string& path, bool directory) {
    if (changes()) {
      const Result<void> done = result_of(path, change(path.c_str(), directory));
      if (!done) return note(done);
      ++changed_;
      if (arguments_.recursive && !arguments_.style.json) return;
    }
    const Result<Labelled> now = look_at(path, directory);
    if (!now) return note(now.error());
    if (arguments_.style.json) return print_row(*now);
    arguments_.list ? print_listed(*now, arguments_.style) : print_shown(*now, arguments_.style);
  }

  int change(const char* path, bool directory) const {
    if (arguments_.clear) {
      return directory ? stream_clear_directory(path) : stream_clear_path(path);
    }
    return directory ? stream_tag_directory(path, &stream_) : stream_tag_path(path, &stream_);
  }

  const HintArguments& arguments_;
  stream_vstream stream_{};
  dev_t device_ = 0;  // of the tree
  uint64_t changed_ = 0;
  std::optional<Error> failed_;
};

}  // namespace

Result<void> hint(const HintArguments& arguments) {
  return Walk(arguments).run();
}

}  // namespace streamfs::tools
