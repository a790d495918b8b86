#include "fuse-fs/tools/archive_writer.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "base/types.h"

namespace streamfs::tools {
namespace {

using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

struct Suffix {
  std::string_view text;
  int filter;
};
constexpr std::array<Suffix, 5> kSuffixes = {{{".tar", ARCHIVE_FILTER_NONE},
                                              {".tar.gz", ARCHIVE_FILTER_GZIP},
                                              {".tgz", ARCHIVE_FILTER_GZIP},
                                              {".tar.xz", ARCHIVE_FILTER_XZ},
                                              {".tar.zst", ARCHIVE_FILTER_ZSTD}}};

std::optional<int> filter_of(const std::string& target) {
  if (target == "-") return ARCHIVE_FILTER_NONE;
  for (const Suffix& each : kSuffixes)
    if (target.ends_with(each.text)) return each.filter;
  return std::nullopt;
}

Result<void> enter_empty(const std::string& folder) {
  std::error_code failed;
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return Error{errno, folder};
  if (!std::filesystem::is_directory(folder, failed))
    return Error{EEXIST, folder + " is there, and no directory"};
  const bool empty = std::filesystem::is_empty(folder, failed);
  if (failed) return Error{failed.value(), folder};
  if (!empty) return Error{ENOTEMPTY, folder + " is not empty; give a new directory"};
  if (::chdir(folder.c_str()) != 0) return Error{errno, folder};
  return {};
}

struct archive* directory_writer() {
  struct archive* out = archive_write_disk_new();
  int flags = ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_ACL |
              ARCHIVE_EXTRACT_XATTR | ARCHIVE_EXTRACT_SECURE_NODOTDOT |
              ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS |
              ARCHIVE_EXTRACT_NO_OVERWRITE;
  if (::geteuid() == 0) flags |= ARCHIVE_EXTRACT_OWNER;
  archive_write_disk_set_options(out, flags);
  return out;
}

constexpr std::array<std::pair<int, int>, 3> kPermissions = {
    {{4, ARCHIVE_ENTRY_ACL_READ}, {2, ARCHIVE_ENTRY_ACL_WRITE}, {1, ARCHIVE_ENTRY_ACL_EXECUTE}}};

int permission_set(uint8_t bits) {
  int out = 0;
  for (const auto& [bit, meaning] : kPermissions)
    if ((bits & bit) != 0) out |= meaning;
  return out;
}

void add_acl(archive_entry* entry, const meta::Acl& acl, int type) {
  const auto add = [&](int tag, uint8_t bits, int id) {
    archive_entry_acl_add_entry(entry, type, permission_set(bits), tag, id, nullptr);
  };
  add(ARCHIVE_ENTRY_ACL_USER_OBJ, acl.owner, -1);
  add(ARCHIVE_ENTRY_ACL_GROUP_OBJ, acl.group, -1);
  add(ARCHIVE_ENTRY_ACL_OTHER, acl.other, -1);
  if (acl.mask) add(ARCHIVE_ENTRY_ACL_MASK, *acl.mask, -1);
  for (const meta::Acl::Named& each : acl.named) {
    add(each.group ? ARCHIVE_ENTRY_ACL_GROUP : ARCHIVE_ENTRY_ACL_USER, each.permissions,
        static_cast<int>(each.id));
  }
}

void set_attributes(archive_entry* entry, const meta::Attributes& from) {
  archive_entry_set_mode(entry, from.mode);
  archive_entry_set_uid(entry, from.uid);
  archive_entry_set_gid(entry, from.gid);
  archive_entry_set_atime(entry, from.atime.seconds, static_cast<long>(from.atime.nanoseconds));
  archive_entry_set_mtime(entry, from.mtime.seconds, static_cast<long>(from.mtime.nanoseconds));
  if (S_ISBLK(from.mode) || S_ISCHR(from.mode)) archive_entry_set_rdev(entry, from.rdev);
  archive_entry_set_size(entry, S_ISREG(from.mode) ? static_cast<int64_t>(from.size) : 0);
}

// Tells libarchive the pieces of a file with holes. A file that is all hole has one empty piece.
void set_holes(archive_entry* entry, const ExportedEntry& from) {
  const auto& pieces = from.data;
  const bool whole =
      pieces.size() == 1 && pieces[0].first == 0 && pieces[0].second == from.attributes.size;
  if (!S_ISREG(from.attributes.mode) || from.attributes.size == 0 || whole) return;
  for (const auto& [offset, length] : pieces) {
    archive_entry_sparse_add_entry(entry, static_cast<int64_t>(offset),
                                   static_cast<int64_t>(length));
  }
  if (pieces.empty()) archive_entry_sparse_add_entry(entry, 0, 0);
}

Entry entry_of(const ExportedEntry& from) {
  Entry entry(archive_entry_new(), &archive_entry_free);
  archive_entry_set_pathname(entry.get(), from.path.c_str());
  set_attributes(entry.get(), from.attributes);
  if (!from.hard_link.empty()) {
    archive_entry_set_hardlink(entry.get(), from.hard_link.c_str());
    archive_entry_unset_size(entry.get());
    return entry;
  }
  if (S_ISLNK(from.attributes.mode)) archive_entry_set_symlink(entry.get(), from.symlink.c_str());
  for (const auto& [name, value] : from.xattrs)
    archive_entry_xattr_add_entry(entry.get(), name.c_str(), value.data(), value.size());
  if (from.access_acl) add_acl(entry.get(), *from.access_acl, ARCHIVE_ENTRY_ACL_TYPE_ACCESS);
  if (from.default_acl) add_acl(entry.get(), *from.default_acl, ARCHIVE_ENTRY_ACL_TYPE_DEFAULT);
  set_holes(entry.get(), from);
  return entry;
}

}  // namespace

Result<std::unique_ptr<ArchiveWriter>> ArchiveWriter::open(const std::string& target) {
  // Names are bytes, mostly UTF-8. In the C locale libarchive could not convert them.
  setlocale(LC_CTYPE, "C.UTF-8");  // NOLINT(concurrency-mt-unsafe): before any thread reads it
  const std::optional<int> filter = filter_of(target);
  if (!filter) {
    SFS_TRY(enter_empty(target));
    return std::unique_ptr<ArchiveWriter>(new ArchiveWriter(directory_writer(), false));
  }
  int fd = STDOUT_FILENO;
  if (target != "-") fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) return Error{EEXIST, target + " is there already"};
  if (fd < 0) return Error{errno, target};
  if (::isatty(fd) == 1) return Error{EINVAL, "an archive is not for a terminal: give -o a name"};
  std::unique_ptr<ArchiveWriter> made(new ArchiveWriter(archive_write_new(), true));
  archive_write_set_format_pax(made->out_);
  archive_write_set_options(made->out_, "hdrcharset=UTF-8");
  archive_write_add_filter(made->out_, *filter);
  if (archive_write_open_fd(made->out_, fd) != ARCHIVE_OK) return made->error(target);
  return made;
}

ArchiveWriter::~ArchiveWriter() {
  archive_write_free(out_);
}

Error ArchiveWriter::error(std::string_view path) const {
  const int code = archive_errno(out_);
  const char* what = archive_error_string(out_);
  std::string context(path);
  if (what != nullptr) context += std::string(": ") + what;
  return Error{code > 0 ? code : EIO, context};
}

std::optional<std::string> ArchiveWriter::warning(int code) const {
  if (code == ARCHIVE_OK) return std::nullopt;
  const char* what = archive_error_string(out_);
  return what == nullptr ? "something could not be kept" : std::string(what);
}

Result<std::optional<std::string>> ArchiveWriter::begin(const ExportedEntry& entry) {
  const Entry made = entry_of(entry);
  size_ = entry.hard_link.empty() && S_ISREG(entry.attributes.mode) ? entry.attributes.size : 0;
  written_ = 0;
  const int code = archive_write_header(out_, made.get());
  if (code < ARCHIVE_WARN) return error(entry.path);
  return warning(code);
}

Result<void> ArchiveWriter::put(ConstBytes bytes) {
  while (!bytes.empty()) {
    const auto done = archive_write_data(out_, bytes.data(), bytes.size());
    if (done <= 0) return error("archive");
    written_ += static_cast<uint64_t>(done);
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return {};
}

// libarchive must be given a file's holes too, and leaves them out again.
Result<void> ArchiveWriter::zeroes_up_to(uint64_t offset) {
  static const std::array<std::byte, 256 * 1024> zeroes{};
  while (written_ < offset) {
    SFS_TRY(put(ConstBytes(zeroes).first(std::min<uint64_t>(offset - written_, zeroes.size()))));
  }
  return {};
}

Result<void> ArchiveWriter::data(uint64_t offset, ConstBytes bytes) {
  if (is_archive_) {
    SFS_TRY(zeroes_up_to(offset));
    return put(bytes);
  }
  const auto done =
      archive_write_data_block(out_, bytes.data(), bytes.size(), static_cast<int64_t>(offset));
  // libarchive reports a failed write, such as on a full disk, only as a warning.
  return done < ARCHIVE_OK ? Result<void>(error("data")) : Result<void>();
}

Result<std::optional<std::string>> ArchiveWriter::end() {
  if (is_archive_) SFS_TRY(zeroes_up_to(size_));
  const int code = archive_write_finish_entry(out_);
  if (code < ARCHIVE_WARN) return error("entry");
  return warning(code);
}

void ArchiveWriter::give_up(const std::string& path) {
  if (is_archive_) return;
  (void)archive_write_finish_entry(out_);
  (void)::unlink(path.c_str());
}

Result<void> ArchiveWriter::finish() {
  if (archive_write_close(out_) != ARCHIVE_OK) return error("the end");
  return {};
}

}  // namespace streamfs::tools
