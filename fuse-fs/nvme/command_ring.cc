#include "fuse-fs/nvme/command_ring.h"

#include <liburing.h>
#include <linux/nvme_ioctl.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/controller.h"
#include "fuse-fs/nvme/linux.h"
#include "fuse-fs/nvme/status.h"
#include "fuse-fs/uring/ring.h"

namespace streamfs::nvme {
namespace {

constexpr size_t kEntryBytes = 128, kCommandAt = offsetof(io_uring_sqe, cmd);
static_assert(kCommandAt == 48 && kCommandAt + sizeof(nvme_uring_cmd) <= kEntryBytes);
constexpr unsigned kLargeEntries = IORING_SETUP_SQE128 | IORING_SETUP_CQE32;

class Passed final : public uring::Request {
 public:
  Passed(int fd, std::chrono::milliseconds pause, const Command& command, Bytes data, Done done)
      : fd_(fd), command_(command), data_(data), done_(std::move(done)) {
    pause_.tv_sec = pause.count() / 1000;
    pause_.tv_nsec = pause.count() % 1000 * 1'000'000;
  }

  void prepare(io_uring_sqe& entry) override {
    if (pauses()) return io_uring_prep_timeout(&entry, &pause_, 0, 0);
    const nvme_uring_cmd command = ring_command(command_, data_);
    entry.opcode = IORING_OP_URING_CMD;
    entry.fd = fd_;
    entry.cmd_op = NVME_URING_CMD_IO;
    std::memcpy(reinterpret_cast<std::byte*>(&entry) + kCommandAt, &command, sizeof command);
  }

  bool completed(const uring::Answer& answer) override {
    if (pauses()) {
      pause_ = {};  // however it ended
      return false;
    }
    done_(returned(answer.result, answer.more, io_name(command_.opcode)));
    return true;
  }

 private:
  bool pauses() const { return pause_.tv_sec != 0 || pause_.tv_nsec != 0; }

  const int fd_;
  __kernel_timespec pause_{};  // before it is sent
  const Command command_;
  const Bytes data_;
  Done done_;
};

}  // namespace

Result<std::unique_ptr<CommandRing>> CommandRing::open(int fd, uint32_t nsid, unsigned depth) {
  auto large = uring::Ring::open(depth, kLargeEntries);
  if (!large.ok() && large.error().code == EINVAL)
    return Error{EINVAL, "io_uring has no room for NVMe commands before Linux 5.19"};
  if (!large.ok()) return large.error();
  if (!(*large)->supports(IORING_OP_URING_CMD))
    return Error{EOPNOTSUPP, "io_uring passes no commands to devices"};
  std::unique_ptr<CommandRing> ring(new CommandRing(std::move(*large), fd));
  const Result<uint32_t> passed = ring->wait_for(flush(nsid), {});
  if (!passed.ok() && passed.error().code == EOPNOTSUPP)
    return Error{EOPNOTSUPP, "this file takes no commands through io_uring"};
  return ring;
}

void CommandRing::start_after(std::chrono::milliseconds pause, const Command& command, Bytes data,
                              Done done) {
  ring_->start(std::make_unique<Passed>(fd_, pause, command, data, std::move(done)));
}

Result<uint32_t> CommandRing::wait_for(const Command& command, Bytes data) {
  std::optional<Result<uint32_t>> answer;
  start(command, data, [&](Result<uint32_t> result) { answer = std::move(result); });
  while (!answer && uring::drive()) {
  }
  return answer ? std::move(*answer) : Result<uint32_t>(Error{EIO, "a command without an answer"});
}

}  // namespace streamfs::nvme
