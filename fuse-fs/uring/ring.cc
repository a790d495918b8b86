#include "fuse-fs/uring/ring.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"

namespace streamfs::uring {
namespace {

// A new ring may be mapped where one was that another thread has just let go, which only the kernel
// orders; this says so to the memory model.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<uint64_t> rings_closed{0};

}  // namespace

std::string refusal(int error, const std::filesystem::path& proc) {
  int disabled = 0;
  std::ifstream(proc / "sys/kernel/io_uring_disabled") >> disabled;
  if (error == EPERM && disabled > 0)
    return "io_uring is disabled here (sysctl kernel.io_uring_disabled = " +
           std::to_string(disabled) + ")";
  if (error == EPERM) return "a sandbox refuses io_uring";
  return error == ENOSYS ? "no io_uring in this kernel, or a sandbox hides it" : "io_uring_setup";
}

Result<std::unique_ptr<Ring>> Ring::open(unsigned depth, unsigned flags, int file) {
  std::unique_ptr<Ring> ring(new Ring(depth, flags));
  SFS_TRY(ring->set_up(file));
  ring->completions_ = std::thread([raw = ring.get()] { raw->complete_all(); });
  return ring;
}

// Before anybody waits for a completion: older kernels register nothing meanwhile.
Result<void> Ring::set_up(int file) {
  if (const int error = io_uring_queue_init(depth_, &ring_, flags_ | IORING_SETUP_CLAMP); error < 0)
    return Error{-error, refusal(-error)};
  is_set_up_ = true;
  (void)rings_closed.load(std::memory_order_acquire);
  if (file == kNoFile) return {};
  if (const int error = io_uring_register_files(&ring_, &file, 1); error < 0)
    return Error{-error, "io_uring_register_files"};
  has_file_ = true;
  return {};
}

Ring::~Ring() {
  if (!is_set_up_) return;
  if (completions_.joinable()) {
    {
      const MutexLock lock(mutex_);
      while (in_flight_ > 0) room_.wait(mutex_);
      submit(nullptr);
    }
    completions_.join();
  }
  rings_closed.fetch_add(1, std::memory_order_release);
  if (has_file_) io_uring_unregister_files(&ring_);
  io_uring_queue_exit(&ring_);
}

bool Ring::supports(int opcode) {
  io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
  const bool yes = probe != nullptr && io_uring_opcode_supported(probe, opcode) != 0;
  io_uring_free_probe(probe);
  return yes;
}

void Ring::start(std::unique_ptr<Request> request) {
  const MutexLock lock(mutex_);
  const bool is_completion = std::this_thread::get_id() == completions_.get_id();
  while (!is_completion && in_flight_ >= depth_) room_.wait(mutex_);
  ++in_flight_;
  submit(request.release());
}

void Ring::submit(Request* request) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  SFS_ASSERT(entry != nullptr);  // every entry is submitted at once, so the queue is empty here
  io_uring_prep_nop(entry);
  if (request != nullptr) request->prepare(*entry);
  io_uring_sqe_set_data(entry, request);
  handed_over_.fetch_add(1, std::memory_order_release);
  int submitted = 0;
  do {
    submitted = io_uring_submit(&ring_);
  } while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY);
  SFS_ASSERT(submitted == 1);
}

void Ring::complete_all() {
  for (;;) {
    io_uring_cqe* entry = nullptr;
    const int error = io_uring_wait_cqe(&ring_, &entry);
    if (error == -EINTR || error == -EAGAIN) continue;
    SFS_ASSERT(error == 0);
    (void)handed_over_.load(std::memory_order_acquire);
    auto* request = static_cast<Request*>(io_uring_cqe_get_data(entry));
    const bool is_large = (flags_ & IORING_SETUP_CQE32) != 0;
    const Answer answer{entry->res, is_large ? entry->big_cqe[0] : 0};
    io_uring_cqe_seen(&ring_, entry);
    if (request == nullptr) return;
    complete(request, answer);
  }
}

void Ring::complete(Request* raw, const Answer& answer) {
  std::unique_ptr<Request> request(raw);
  const bool is_over =
      answer.result != -EINTR && answer.result != -EAGAIN && request->completed(answer);
  if (is_over) request.reset();
  const MutexLock lock(mutex_);
  if (!is_over) return submit(request.release());
  --in_flight_;
  room_.notify_all();
}

}  // namespace streamfs::uring
