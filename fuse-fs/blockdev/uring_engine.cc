#include "fuse-fs/blockdev/uring_engine.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/write_streams.h"
#include "fuse-fs/uring/ring.h"

namespace streamfs::blockdev {
namespace {

constexpr size_t kMaxTransfer = size_t{1} << 30;  // an entry's; the kernel stops below 2 GiB

class Transfer final : public uring::Request {
 public:
  Transfer(int fd, bool is_write, Bytes data, uint64_t offset, uint8_t stream, IoDone done)
      : fd_(fd),
        is_write_(is_write),
        stream_(stream),
        data_(data),
        offset_(offset),
        done_(std::move(done)) {}

  void prepare(io_uring_sqe& entry) override {
    const auto size = static_cast<unsigned>(std::min(data_.size(), kMaxTransfer));
    if (is_write_)
      io_uring_prep_write(&entry, 0, data_.data(), size, offset_);
    else
      io_uring_prep_read(&entry, 0, data_.data(), size, offset_);
    set_write_stream(entry, stream_);
    entry.flags |= IOSQE_FIXED_FILE;
  }

  bool completed(const uring::Answer& answer) override {
    if (answer.result < 0 && is_write_)
      return finish(failed_write(fd_, offset_ + data_.size(), -answer.result));
    if (answer.result < 0) return finish(Error{-answer.result, "read"});
    const auto moved = static_cast<size_t>(answer.result);
    if (moved == 0 && !data_.empty())
      return finish(Error{EIO, "transfer beyond the end of the device"});
    data_ = data_.subspan(moved);
    offset_ += moved;
    return data_.empty() && finish({});
  }

 private:
  bool finish(Result<void> result) {
    done_(std::move(result));
    return true;
  }

  const int fd_;
  const bool is_write_;
  const uint8_t stream_;
  Bytes data_;  // the rest of the buffer; a write only reads it
  uint64_t offset_;
  IoDone done_;
};

}  // namespace

Result<std::unique_ptr<UringEngine>> UringEngine::open(int fd, unsigned depth) {
  SFS_ASSIGN(std::unique_ptr<uring::Ring> ring, uring::Ring::open(depth, 0, fd));
  return std::unique_ptr<UringEngine>(new UringEngine(fd, std::move(ring)));
}

void UringEngine::write(uint64_t offset, ConstBytes bytes, uint8_t stream, IoDone done) {
  if (!ring_->is_to_be_had()) return plain_->write(offset, bytes, stream, std::move(done));
  const Bytes data(const_cast<std::byte*>(bytes.data()), bytes.size());
  ring_->start(std::make_unique<Transfer>(fd_, true, data, offset, stream, std::move(done)));
}

void UringEngine::read(uint64_t offset, Bytes bytes, IoDone done) {
  if (!ring_->is_to_be_had()) return plain_->read(offset, bytes, std::move(done));
  ring_->start(std::make_unique<Transfer>(fd_, false, bytes, offset, 0, std::move(done)));
}

Result<void> UringEngine::fdatasync() {
  return sync_file(fd_);
}

}  // namespace streamfs::blockdev
