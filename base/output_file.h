// A file that appears whole or not at all: it is written without a name (O_TMPFILE) and linked by
// commit().
// Thread safety: none.
// If the process dies before commit() has returned, nothing is left, with two exceptions. A file
// named .streamfs-* may be left in the same folder if the host's filesystem has no O_TMPFILE, or if
// the process dies in a commit() that replaces a file. Content is not synced: a power cut after
// commit() may lose it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace streamfs {

class OutputFile {
 public:
  enum class Existing : uint8_t { kReplace, kRefuse };

  // Creates an empty file in the folder of `path`. Errors: those of open(2); EISDIR for a path that
  // ends in a slash.
  static Result<OutputFile> create(const std::string& path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  int fd() const { return fd_; }  // open for reading and writing; owned by this object
  Result<void> write(std::string_view content);
  // Gives the file its path. Requires: called once. Errors: EEXIST if the path exists and
  // `existing` is kRefuse; those of linkat(2) and renameat2(2).
  Result<void> commit(Existing existing = Existing::kReplace);

 private:
  OutputFile(std::string path, std::string name, int fd)
      : path_(std::move(path)), name_(std::move(name)), fd_(fd) {}
  Result<void> give_name(const std::string& name) const;

  std::string path_;
  std::string name_;  // temporary name that the destructor removes; empty: none
  int fd_;
};

// Creates, writes and commits the file; replaces an existing one.
Result<void> write_whole(const std::string& path, std::string_view content);

}  // namespace streamfs
