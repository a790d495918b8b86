#include "fuse-fs/blockdev/io_engine.h"

#include <fmt/format.h>
#include <linux/fs.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/uring_engine.h"

namespace streamfs::blockdev {
namespace {

class SynchronousEngine final : public IoEngine {
 public:
  SynchronousEngine(int fd, const std::string& why)
      : fd_(fd), name_(why.empty() ? "system calls" : "system calls: " + why) {}

  const char* name() const override { return name_.c_str(); }
  bool takes_streams() const override { return false; }

  void write(uint64_t offset, ConstBytes bytes, uint8_t, IoDone done) override {
    done(transfer(
        offset, bytes,
        [this](const std::byte* at, size_t size, off_t where) {
          return pwrite(fd_, at, size, where);
        },
        [this](uint64_t end, int code) { return failed_write(fd_, end, code); }));
  }

  void read(uint64_t offset, Bytes bytes, IoDone done) override {
    done(transfer(
        offset, bytes,
        [this](std::byte* at, size_t size, off_t where) { return pread(fd_, at, size, where); },
        [](uint64_t, int code) { return Error{code, "read"}; }));
  }

  Result<void> fdatasync() override { return sync_file(fd_); }

 private:
  template <typename Span, typename Move, typename Failed>
  static Result<void> transfer(uint64_t offset, Span bytes, Move move, Failed failed) {
    while (!bytes.empty()) {
      const ssize_t done = move(bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return failed(offset + bytes.size(), errno);
      if (done == 0) return Error{EIO, "transfer beyond the end of the device"};
      bytes = bytes.subspan(static_cast<size_t>(done));
      offset += static_cast<uint64_t>(done);
    }
    return {};
  }

  const int fd_;
  const std::string name_;
};

}  // namespace

Result<void> sync_file(int fd) {
  while (::fdatasync(fd) != 0) {
    if (errno != EINTR) return Error{errno, "fdatasync"};
  }
  return {};
}

Error failed_write(int fd, uint64_t end, int code) {
  uint64_t bytes = 0;
  const bool is_past = code == ENOSPC && ioctl(fd, BLKGETSIZE64, &bytes) == 0 && end > bytes;
  if (!is_past) return {code, "write"};
  return {EIO, fmt::format("write beyond the end of the device, which has {} bytes now", bytes)};
}

std::unique_ptr<IoEngine> make_synchronous_engine(int fd, const std::string& why) {
  return std::make_unique<SynchronousEngine>(fd, why);
}

std::unique_ptr<IoEngine> make_io_engine(int fd, unsigned depth) {
  Result<std::unique_ptr<UringEngine>> ring = UringEngine::open(fd, depth);
  if (ring.ok()) return std::move(*ring);
  spdlog::warn("{}: reading and writing in the caller's thread", ring.error().message());
  return make_synchronous_engine(fd, ring.error().message());
}

}  // namespace streamfs::blockdev
