// A file that is there whole or not at all: written without a name, which it gets at the end.
// Thread safety: none. Crash: nothing is left. Where the host's file system has no files without a
// name, or in the moment that replaces a file, a file named .ssd-sim-* beside it may be.
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

  // Creates an empty file where `path` will be. Errors: what open(2) says.
  static Result<OutputFile> create(const std::string& path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  int fd() const { return fd_; }  // to read and write; stays this object's
  Result<void> write(std::string_view content);
  // Once. Errors: EEXIST for a file that is there and not to be replaced.
  Result<void> commit(Existing existing = Existing::kReplace);

 private:
  OutputFile(std::string path, std::string name, int fd)
      : path_(std::move(path)), name_(std::move(name)), fd_(fd) {}
  Result<void> give_name(const std::string& name) const;

  std::string path_;
  std::string name_;  // the one it has now, to be removed; empty: none, or committed
  int fd_;
};

// All of it at once.
Result<void> write_whole(const std::string& path, std::string_view content);

}  // namespace streamfs
