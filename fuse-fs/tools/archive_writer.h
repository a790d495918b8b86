// Writes files of a filesystem into a directory or a tar archive, by libarchive, with owners,
// times, ACLs, extended attributes, holes and hard links.
//
// It overwrites no existing file, and no name leads out of the directory.
// Thread safety: one thread. A target directory becomes the working directory of the process.
// After a crash: the target has what was written so far; an archive lacks its end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/engine.h"

struct archive;
struct archive_entry;

namespace streamfs::tools {

struct ExportedEntry {
  std::string path;  // relative, without "." and ".."
  meta::Attributes attributes;
  std::string symlink;
  std::string hard_link;  // a path written before, if this is another name of the same file
  std::vector<std::pair<std::string, std::string>> xattrs;
  std::optional<meta::Acl> access_acl, default_acl;
  std::vector<std::pair<uint64_t, uint64_t>> data;  // of a regular file: offset, length; ascending
};

class ArchiveWriter {
 public:
  // Opens an archive if `target` ends in .tar, .tar.gz, .tgz, .tar.xz or .tar.zst, or is "-" (a tar
  // to standard output). Otherwise opens a directory, which is made or must be empty.
  // Errors: EEXIST, ENOTEMPTY, with a sentence that says what is there; EINVAL for an archive to a
  // terminal; those of open(2), mkdir(2) and chdir(2).
  static Result<std::unique_ptr<ArchiveWriter>> open(const std::string& target);
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;

  // An archive has a file's size before its bytes, so the caller must know that all of the file is
  // readable before it begins the entry.
  bool is_archive() const { return is_archive_; }
  // begin() and end() return a sentence about what could not be kept (an owner, an attribute), or
  // nullopt. Only root keeps owners in a directory. For other users the files become their own, and
  // no sentence says so.
  Result<std::optional<std::string>> begin(const ExportedEntry& entry);
  Result<void> data(uint64_t offset, ConstBytes bytes);  // ascending, pieces of `data` only
  Result<std::optional<std::string>> end();
  // Ends the entry that was begun, and removes it from a directory. Does nothing for an archive.
  void give_up(const std::string& path);
  Result<void> finish();  // called after the last entry

 private:
  ArchiveWriter(struct archive* out, bool is_archive) : out_(out), is_archive_(is_archive) {}
  Error error(std::string_view path) const;
  std::optional<std::string> warning(int code) const;
  Result<void> put(ConstBytes bytes);
  Result<void> zeroes_up_to(uint64_t offset);

  struct archive* out_;
  const bool is_archive_;
  uint64_t size_ = 0, written_ = 0;  // of the entry begun
};

}  // namespace streamfs::tools
