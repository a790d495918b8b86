#include "fuse-fs/nvme/command_ring.h"

#include <linux/nvme_ioctl.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/linux.h"
#include "fuse-fs/nvme/status.h"

namespace streamfs::nvme {
namespace {

constexpr size_t kEntryBytes = 128, kCommandAt = offsetof(io_uring_sqe, cmd);
static_assert(kCommandAt == 48 && kCommandAt + sizeof(nvme_uring_cmd) <= kEntryBytes);
constexpr unsigned kLargeEntries = IORING_SETUP_SQE128 | IORING_SETUP_CQE32;

// As for the other ring (uring_engine.cc): a new one may be mapped where one was.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<uint64_t> rings_closed{0};

}  // namespace

Result<std::unique_ptr<CommandRing>> CommandRing::open(int fd, uint32_t nsid, unsigned depth) {
  std::unique_ptr<CommandRing> ring(new CommandRing(fd, depth));
  SFS_TRY(ring->set_up());
  ring->completions_ = std::thread([raw = ring.get()] { raw->complete_all(); });
  const Result<uint32_t> passed = ring->wait_for(flush(nsid), {});
  if (!passed.ok() && passed.error().code == EOPNOTSUPP)
    return Error{EOPNOTSUPP, "this file takes no commands through io_uring"};
  return ring;
}

Result<void> CommandRing::set_up() {
  if (const int error = io_uring_queue_init(depth_, &ring_, kLargeEntries | IORING_SETUP_CLAMP);
      error < 0)
    return Error{-error, "io_uring with room for NVMe commands (Linux 5.19)"};
  is_set_up_ = true;
  (void)rings_closed.load(std::memory_order_acquire);
  io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
  const bool passes =
      probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_URING_CMD) != 0;
  io_uring_free_probe(probe);
  if (!passes) return Error{EOPNOTSUPP, "io_uring passes no commands to devices"};
  return {};
}

CommandRing::~CommandRing() {
  if (completions_.joinable()) {
    {
      const MutexLock lock(mutex_);
      while (in_flight_ > 0) room_.wait(mutex_);
      submit(&stop_);
    }
    completions_.join();
  }
  if (!is_set_up_) return;
  rings_closed.fetch_add(1, std::memory_order_release);
  io_uring_queue_exit(&ring_);
}

void CommandRing::start(const Command& command, Bytes data, Done done) {
  auto request = std::make_unique<Request>(Request{command, data, std::move(done)});
  const MutexLock lock(mutex_);
  const bool is_done = std::this_thread::get_id() == completions_.get_id();
  while (!is_done && in_flight_ >= depth_) room_.wait(mutex_);
  ++in_flight_;
  submit(request.release());
}

Result<uint32_t> CommandRing::wait_for(const Command& command, Bytes data) {
  std::promise<Result<uint32_t>> promise;
  start(command, data, [&](Result<uint32_t> result) { promise.set_value(std::move(result)); });
  return promise.get_future().get();
}

void CommandRing::submit(Request* request) {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  SFS_ASSERT(sqe != nullptr);  // every entry is submitted at once, so the queue is empty here
  io_uring_prep_nop(sqe);
  if (!request->stop) {
    const nvme_uring_cmd command = ring_command(request->command, request->data);
    sqe->opcode = IORING_OP_URING_CMD;
    sqe->fd = fd_;
    sqe->cmd_op = NVME_URING_CMD_IO;
    std::memcpy(reinterpret_cast<std::byte*>(sqe) + kCommandAt, &command, sizeof command);
  }
  io_uring_sqe_set_data(sqe, request);
  handed_over_.fetch_add(1, std::memory_order_release);
  int submitted = 0;
  do {
    submitted = io_uring_submit(&ring_);
  } while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY);
  SFS_ASSERT(submitted == 1);
}

void CommandRing::complete_all() {
  for (;;) {
    io_uring_cqe* cqe = nullptr;
    const int error = io_uring_wait_cqe(&ring_, &cqe);
    if (error == -EINTR || error == -EAGAIN) continue;
    SFS_ASSERT(error == 0);
    (void)handed_over_.load(std::memory_order_acquire);
    auto* request = static_cast<Request*>(io_uring_cqe_get_data(cqe));
    const int status = cqe->res;
    const uint64_t result = cqe->big_cqe[0];
    io_uring_cqe_seen(&ring_, cqe);
    if (!completed(request, status, result)) return;
  }
}

// False once told to stop.
bool CommandRing::completed(Request* request, int status, uint64_t result) {
  if (request->stop) return false;
  if (status == -EINTR || status == -EAGAIN) {
    const MutexLock lock(mutex_);
    submit(request);
    return true;
  }
  const std::unique_ptr<Request> owned(request);
  owned->done(returned(status, result, io_name(owned->command.opcode)));
  const MutexLock lock(mutex_);
  --in_flight_;
  room_.notify_all();
  return true;
}

}  // namespace streamfs::nvme
