#include "emulator/ssd_sim/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace streamfs::emulator::ssd_sim {

Result<OutputFile> OutputFile::create(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  if (name == path.size()) return Error{EISDIR, "cannot create " + path};
  std::string beside =
      fmt::format("{}.ssd-sim-{}-{}", path.substr(0, name), getpid(), path.substr(name));
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return Error{errno, "cannot create " + path};
  (void)::close(fd);
  return OutputFile(path, std::move(beside));
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), working_path_(std::exchange(other.working_path_, {})) {}

OutputFile::~OutputFile() {
  if (!working_path_.empty()) (void)unlink(working_path_.c_str());
}

Result<void> OutputFile::commit() {
  if (std::rename(working_path_.c_str(), path_.c_str()) != 0)
    return Error{errno, "cannot create " + path_};
  working_path_.clear();
  return {};
}

Result<void> write_whole(const std::string& path, std::string_view content) {
  SFS_ASSIGN(OutputFile file, OutputFile::create(path));
  std::ofstream out(file.working_path(), std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) return Error{EIO, "cannot write " + path};
  return file.commit();
}

}  // namespace streamfs::emulator::ssd_sim
