// IoEngine over one io_uring: one submission lock, one completion thread, one fixed file.
// Thread safety and completions: see io_engine.h.
#pragma once

#include <liburing.h>

#include <atomic>
#include <thread>

#include "base/mutex.h"
#include "fuse-fs/blockdev/io_engine.h"

namespace streamfs::blockdev {

class UringEngine final : public IoEngine {
 public:
  // Errors: what io_uring_setup(2) says; ENOSYS and EPERM where rings are not to be had.
  static Result<std::unique_ptr<UringEngine>> open(int fd, unsigned depth);
  ~UringEngine() override;

  void write(uint64_t offset, ConstBytes bytes, IoDone done) override;
  void read(uint64_t offset, Bytes bytes, IoDone done) override;
  Result<void> fdatasync() override;

 private:
  enum class Kind : uint8_t { kWrite, kRead, kSync, kStop };
  struct Request {
    Kind kind;
    std::byte* data;
    size_t size;
    uint64_t offset;
    IoDone done;
  };

  explicit UringEngine(unsigned depth) : depth_(depth) {}
  void start(std::unique_ptr<Request> request);
  void submit(Request* request) SFS_REQUIRES(mutex_);
  void complete_all();
  bool completed(Request* request, int result);
  void resubmit(Request* request);
  void finish(Request* request, Result<void> result);

  const unsigned depth_;
  io_uring ring_{};
  std::thread completions_;
  Mutex mutex_;  // leaf: the submission queue and the count
  CondVar room_;
  // The ring orders submission before completion; this says so to the memory model.
  std::atomic<uint64_t> handed_over_{0};
  unsigned in_flight_ SFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace streamfs::blockdev
