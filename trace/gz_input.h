// A file, gzipped or not, read by lines or by records of one size; errors name the file, the line
// or record, and what is wrong there. Thread safety: none.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace streamfs::trace {

struct GzCloser {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, GzCloser>;

class GzInput {
 public:
  // Errors: what open(2) says.
  static Result<GzInput> open(const std::string& path);

  // False at the end. The line is without its end, and stays until the next call.
  // Errors: EINVAL, lines that are too long, damaged compression.
  Result<bool> line(std::string_view& text);
  // False at the end. Errors: EINVAL, a record that is cut off, damaged compression.
  Result<bool> record(void* data, size_t size);
  // What the file starts with, and how many bytes that are, at most so many; reading starts over.
  Result<size_t> peek(void* data, size_t size);
  Result<void> skip(size_t size);

  const std::string& path() const { return path_; }
  // EINVAL: what is wrong with the line or record last read; what cannot be printed becomes "?".
  Error complain(const std::string& what) const;

 private:
  GzInput(gzFile_s* file, std::string path) : path_(std::move(path)), file_(file) {}
  bool damaged() const;
  Result<void> refill();

  std::string path_;
  GzFile file_;
  std::vector<char> buffer_;  // of lines: what lies in [from_, to_) is not given yet
  size_t from_ = 0, to_ = 0;
  uint64_t number_ = 0;  // of the line or record last read
  const char* unit_ = "line";
};

}  // namespace streamfs::trace
