#include "fuse-fs/blockdev/uring_engine.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"

namespace streamfs::blockdev {
namespace {

constexpr size_t kMaxTransfer = size_t{1} << 30;  // one SQE; the kernel stops a little below 2 GiB

// A new ring may be mapped where one was that another thread has just let go, which only the kernel
// orders; this says so to the memory model.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<uint64_t> rings_closed{0};

}  // namespace

Result<std::unique_ptr<UringEngine>> UringEngine::open(int fd, unsigned depth) {
  std::unique_ptr<UringEngine> engine(new UringEngine(depth));
  if (const int error = io_uring_queue_init(depth, &engine->ring_, IORING_SETUP_CLAMP); error < 0)
    return Error{-error, "io_uring_setup"};
  (void)rings_closed.load(std::memory_order_acquire);
  if (const int error = io_uring_register_files(&engine->ring_, &fd, 1); error < 0) {
    io_uring_queue_exit(&engine->ring_);
    engine->ring_.ring_fd = -1;
    return Error{-error, "io_uring_register_files"};
  }
  engine->completions_ = std::thread([raw = engine.get()] { raw->complete_all(); });
  return engine;
}

UringEngine::~UringEngine() {
  if (!completions_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    while (in_flight_ > 0) room_.wait(mutex_);
    static Request stop{Kind::kStop, nullptr, 0, 0, {}};
    submit(&stop);
  }
  completions_.join();
  rings_closed.fetch_add(1, std::memory_order_release);
  io_uring_unregister_files(&ring_);
  io_uring_queue_exit(&ring_);
}

void UringEngine::write(uint64_t offset, ConstBytes bytes, IoDone done) {
  // The kernel only reads from the buffer of a write.
  auto* data = const_cast<std::byte*>(bytes.data());
  start(std::make_unique<Request>(Kind::kWrite, data, bytes.size(), offset, std::move(done)));
}

void UringEngine::read(uint64_t offset, Bytes bytes, IoDone done) {
  start(
      std::make_unique<Request>(Kind::kRead, bytes.data(), bytes.size(), offset, std::move(done)));
}

Result<void> UringEngine::fdatasync() {
  std::promise<Result<void>> promise;
  start(std::make_unique<Request>(Kind::kSync, nullptr, 0, 0, [&](Result<void> result) {
    promise.set_value(std::move(result));
  }));
  return promise.get_future().get();
}

void UringEngine::start(std::unique_ptr<Request> request) {
  const MutexLock lock(mutex_);
  const bool is_completion = std::this_thread::get_id() == completions_.get_id();
  while (!is_completion && in_flight_ >= depth_) room_.wait(mutex_);
  ++in_flight_;
  submit(request.release());
}

void UringEngine::submit(Request* request) {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  SFS_ASSERT(sqe != nullptr);  // every entry is submitted at once, so the queue is empty here
  const auto size = static_cast<unsigned>(std::min(request->size, kMaxTransfer));
  switch (request->kind) {
    case Kind::kWrite:
      io_uring_prep_write(sqe, 0, request->data, size, request->offset);
      break;
    case Kind::kRead:
      io_uring_prep_read(sqe, 0, request->data, size, request->offset);
      break;
    case Kind::kSync:
      io_uring_prep_fsync(sqe, 0, IORING_FSYNC_DATASYNC);
      break;
    case Kind::kStop:
      io_uring_prep_nop(sqe);
      break;
  }
  if (request->kind != Kind::kStop) sqe->flags |= IOSQE_FIXED_FILE;
  io_uring_sqe_set_data(sqe, request);
  handed_over_.fetch_add(1, std::memory_order_release);
  int submitted = 0;
  do {
    submitted = io_uring_submit(&ring_);
  } while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY);
  SFS_ASSERT(submitted == 1);
}

void UringEngine::complete_all() {
  for (;;) {
    io_uring_cqe* cqe = nullptr;
    const int error = io_uring_wait_cqe(&ring_, &cqe);
    if (error == -EINTR || error == -EAGAIN) continue;
    SFS_ASSERT(error == 0);
    (void)handed_over_.load(std::memory_order_acquire);
    auto* request = static_cast<Request*>(io_uring_cqe_get_data(cqe));
    const int result = cqe->res;
    io_uring_cqe_seen(&ring_, cqe);
    if (!completed(request, result)) return;
  }
}

// False once told to stop.
bool UringEngine::completed(Request* request, int result) {
  if (request->kind == Kind::kStop) return false;
  if (result == -EINTR || result == -EAGAIN) {
    resubmit(request);
  } else if (result < 0) {
    finish(request, Error{-result, request->kind == Kind::kRead ? "read" : "write"});
  } else if (result == 0 && request->size > 0) {
    finish(request, Error{EIO, "transfer beyond the end of the device"});
  } else if (static_cast<size_t>(result) < request->size) {
    request->data += result;
    request->size -= static_cast<size_t>(result);
    request->offset += static_cast<uint64_t>(result);
    resubmit(request);
  } else {
    finish(request, {});
  }
  return true;
}

void UringEngine::resubmit(Request* request) {
  const MutexLock lock(mutex_);
  submit(request);
}

void UringEngine::finish(Request* request, Result<void> result) {
  const std::unique_ptr<Request> owned(request);
  owned->done(std::move(result));
  const MutexLock lock(mutex_);
  --in_flight_;
  room_.notify_all();
}

}  // namespace streamfs::blockdev
