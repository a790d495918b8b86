// Reads a file, gzipped or not, by lines or by records of one size. Errors name the file, the line
// or record, and the fault. Thread safety: none.
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
  // Errors: those of open(2), ENOMEM.
  static Result<GzInput> open(const std::string& path);

  // Reads the next line, without its line end; false at the end of the file. `text` is valid until
  // the next call. Errors: EINVAL for a line of 4 KiB or more, and, once all whole lines before the
  // place were returned, for damaged compression or a failed read. The other calls, too, return
  // EINVAL for a failed read.
  Result<bool> line(std::string_view& text);
  // Reads the next record; false at the end of the file. Errors: EINVAL for a record that is cut
  // off or damaged compression.
  Result<bool> record(void* data, size_t size);
  // Reads up to `size` bytes from the start of the file and rewinds; returns their number.
  // Requires, as skip() does: no line() or record() yet. Errors: EINVAL for damaged compression.
  Result<size_t> peek(void* data, size_t size);
  // Continues at byte `size` of the uncompressed file.
  Result<void> skip(size_t size);

  const std::string& path() const { return path_; }
  // Returns EINVAL with the file, the last line or record, and `what`; control characters become
  // "?".
  Error complain(const std::string& what) const;

 private:
  GzInput(gzFile_s* file, std::string path) : path_(std::move(path)), file_(file) {}
  bool damaged() const;
  Result<void> refill();

  std::string path_;
  GzFile file_;
  std::vector<char> buffer_;  // for line(): [from_, to_) is not returned yet
  size_t from_ = 0, to_ = 0;
  uint64_t number_ = 0;  // of the last line or record
  const char* unit_ = "line";
};

}  // namespace streamfs::trace
