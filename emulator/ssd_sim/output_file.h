// A file that is there whole or not at all: written beside its place, renamed at the end.
// Thread safety: none. Crash: a file named .ssd-sim-* may be left beside the place.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace streamfs::emulator::ssd_sim {

class OutputFile {
 public:
  // Creates an empty file at working_path(), which ends as `path` does. Errors: what open(2) says.
  static Result<OutputFile> create(const std::string& path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  const std::string& working_path() const { return working_path_; }
  Result<void> commit();  // replaces what is there

 private:
  OutputFile(std::string path, std::string working_path)
      : path_(std::move(path)), working_path_(std::move(working_path)) {}

  std::string path_;
  std::string working_path_;  // empty once committed
};

// All of it at once.
Result<void> write_whole(const std::string& path, std::string_view content);

}  // namespace streamfs::emulator::ssd_sim
