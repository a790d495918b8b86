// Recorded traces that figures replay, compiled into the program so that a figure needs no file.
// README.md in this folder describes them and their recording.
// Thread safety: a value of one thread; its path may be opened by several.
#pragma once

#include <string>

#include "base/result.h"

namespace streamfs::lab::figures {

class Recording {
 public:
  // Returns a real F2FS's requests under a phone's work. Errors: those of memfd_create(2) and
  // write(2).
  static Result<Recording> f2fs_phone();

  ~Recording();
  Recording(Recording&& other) noexcept;
  Recording& operator=(Recording&&) = delete;

  // Returns a path for readers of traces, valid as long as this object lives.
  std::string path() const;

 private:
  explicit Recording(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace streamfs::lab::figures
