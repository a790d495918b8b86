#include "fuse-fs/placement/stored_model.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "base/checksum.h"
#include "base/result.h"
#include "base/wire/magic.h"
#include "base/wire/model_table.h"
#include "base/wire/stored_model.h"

namespace streamfs::placement {
namespace {

Error system_error() {
  return Error{errno, std::generic_category().message(errno)};
}

class OpenFile {
 public:
  // Neither waits for a pipe nor follows a link that the file's folder holds.
  explicit OpenFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

Result<void> check_file(int fd) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) return system_error();
  if (!S_ISREG(found.st_mode)) return Error{EINVAL, "no regular file"};
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) return Error{EPERM, "other users may change it"};
  if (static_cast<uint64_t>(found.st_size) != sizeof(wire::StoredModel))
    return Error{EINVAL, "not as long as a stored model"};
  return {};
}

Result<void> read_whole(int fd, std::span<std::byte> out) {
  for (size_t at = 0; at < out.size();) {
    const ssize_t got = ::pread(fd, out.data() + at, out.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error();
    if (got == 0) return Error{EINVAL, "it became shorter"};
    at += static_cast<size_t>(got);
  }
  return {};
}

Result<void> check(const wire::StoredModel& stored, const std::array<uint8_t, 16>& uuid) {
  if (stored.magic != wire::kStoredModelMagic) return Error{EINVAL, "no stored model"};
  if (stored.version != wire::kStoredModelVersion || stored.model_version != wire::kModelVersion)
    return Error{EINVAL, "another version"};
  if (stored.buffer_size != sizeof(wire::ModelBuffer)) return Error{EINVAL, "another size"};
  if (crc32c(wire::summed(stored)) != stored.checksum)
    return Error{EINVAL, "wrong checksum of the file"};
  if (!std::ranges::equal(stored.uuid, uuid)) return Error{EINVAL, "made for another filesystem"};
  return {};
}

}  // namespace

std::string stored_model_path(const std::string& path, const std::array<uint8_t, 16>& uuid) {
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed)) return path;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name;
  for (const uint8_t byte : uuid) {
    name += kDigits[byte >> 4];
    name += kDigits[byte & 15];
  }
  return path + "/" + name + ".model";
}

Result<std::unique_ptr<wire::StoredModel>> read_stored_model(const std::string& path,
                                                             const std::array<uint8_t, 16>& uuid) {
  const OpenFile file(path);
  if (file.fd() < 0) return system_error();
  SFS_TRY(check_file(file.fd()));
  auto stored = std::make_unique<wire::StoredModel>();
  SFS_TRY(read_whole(file.fd(), std::as_writable_bytes(std::span(stored.get(), 1))));
  SFS_TRY(check(*stored, uuid));
  return stored;
}

}  // namespace streamfs::placement
