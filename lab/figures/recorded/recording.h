// Traces that figures replay and nobody can make at will: part of the program, so that a figure
// needs no file. What they are, and how they are recorded, is said in this folder's README.md.
// Thread safety: a value of one thread; its path may be opened by several.
#pragma once

#include <string>

#include "base/result.h"

namespace streamfs::lab::figures {

class Recording {
 public:
  // What a phone's work made a real F2FS send its SSD. Errors: what memfd_create(2) says.
  static Result<Recording> f2fs_phone();

  ~Recording();
  Recording(Recording&& other) noexcept;
  Recording& operator=(Recording&&) = delete;

  // For readers of traces, as long as this object lives.
  std::string path() const;

 private:
  explicit Recording(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace streamfs::lab::figures
