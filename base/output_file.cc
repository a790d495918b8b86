#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace streamfs {
namespace {

Error cannot_create(const std::string& path) {
  return {errno, "cannot create " + path};
}

// With the slash; empty for a name alone.
std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

std::string name_beside(const std::string& path) {
  const std::string folder = folder_of(path);
  return fmt::format("{}.streamfs-{}-{}", folder, getpid(), path.substr(folder.size()));
}

// linkat(2) by descriptor alone is for the privileged.
std::string by_descriptor(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

// −1: the host's file system has none, or they could not be named.
int open_nameless(const std::string& path) {
  const std::string folder = folder_of(path);
  const int fd =
      ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (fd < 0 || ::access(by_descriptor(fd).c_str(), F_OK) == 0) return fd;
  (void)::close(fd);
  return -1;
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  if (folder_of(path).size() == path.size()) return Error{EISDIR, "cannot create " + path};
  if (const int fd = open_nameless(path); fd >= 0) return OutputFile(path, {}, fd);
  std::string name = name_beside(path);
  const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return cannot_create(path);
  return OutputFile(path, std::move(name), fd);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      name_(std::exchange(other.name_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
  if (!name_.empty()) (void)::unlink(name_.c_str());
  if (fd_ >= 0) (void)::close(fd_);
}

Result<void> OutputFile::write(std::string_view content) {
  while (!content.empty()) {
    const ssize_t wrote = ::write(fd_, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Error{errno, "cannot write " + path_};
    content.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

Result<void> OutputFile::give_name(const std::string& name) const {
  if (::linkat(AT_FDCWD, by_descriptor(fd_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) !=
      0)
    return cannot_create(path_);
  return {};
}

// No link replaces a file: only then is there another name on the way.
Result<void> OutputFile::commit(Existing existing) {
  if (name_.empty()) {
    const Result<void> named = give_name(path_);
    if (named.ok() || named.error().code != EEXIST || existing == Existing::kRefuse) return named;
    const std::string name = name_beside(path_);
    (void)::unlink(name.c_str());  // of a process that had our number
    SFS_TRY(give_name(name));
    name_ = name;
  }
  const unsigned flags = existing == Existing::kRefuse ? RENAME_NOREPLACE : 0;
  if (::renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, path_.c_str(), flags) != 0)
    return cannot_create(path_);
  name_.clear();
  return {};
}

Result<void> write_whole(const std::string& path, std::string_view content) {
  SFS_ASSIGN(OutputFile file, OutputFile::create(path));
  SFS_TRY(file.write(content));
  return file.commit();
}

}  // namespace streamfs
