// Requests to the kernel, byte by byte; the files of /sys that are read; and the ring, on files of
// the kernel's own. No NVMe device has taken part.
#include "fuse-fs/nvme/linux.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/nvme/command.h"
#include "fuse-fs/nvme/command_ring.h"
#include "fuse-fs/uring/ring.h"
#include "tests/unit/nvme/bytes.h"

namespace streamfs::nvme {
namespace {

// linux/nvme_ioctl.h: opcode, nsid at 4, addr at 24, data_len at 36, cdw10 to 15 from 40 on.
TEST(Linux, TheKernelIsHandedOurDwordsAndTheBuffer) {
  const auto address = uint64_t{0x1122334455667788};
  const Bytes data(reinterpret_cast<std::byte*>(address), 0x2000);
  const Command command{0x01, 7, {0x10, 0x11, 0x12, 0x13, 0x14, 0x15}};
  const std::string expected =
      "01 00 00 00 07 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
      "88 77 66 55 44 33 22 11 00 00 00 00 00 20 00 00 "
      "10 00 00 00 11 00 00 00 12 00 00 00 13 00 00 00 14 00 00 00 15 00 00 00 "
      "00 00 00 00 00 00 00 00";
  const nvme_uring_cmd ring = ring_command(command, data);
  std::array<std::byte, sizeof ring> bytes{};
  std::memcpy(bytes.data(), &ring, sizeof ring);
  EXPECT_EQ(hex(bytes), expected);
  const nvme_passthru_cmd64 by_ioctl = ioctl_command(command, data);
  std::memcpy(bytes.data(), &by_ioctl, sizeof bytes);
  EXPECT_EQ(hex(bytes), expected);
  EXPECT_EQ(by_ioctl.result, 0u);
}

TEST(Linux, WhatComesBackIsAnErrnoOrAStatus) {
  EXPECT_EQ(returned(0, 5, "x").value(), 5u);
  EXPECT_EQ(returned(-EACCES, 5, "x").error().code, EACCES);
  EXPECT_EQ(returned(0x4002, 5, "x").error().code, EINVAL);
  EXPECT_EQ(returned(0x0281, 5, "x").error().code, EIO);
  EXPECT_EQ(returned(-EINVAL, 5, "x").error().code, ENOLINK);  // the kernel's own: no path
}

TEST(Linux, WhatAResetCancelledIsPassedAgainABoundedNumberOfTimes) {
  int calls = 0, cancelled = 3, status = 0;
  const auto pass = [&](nvme_passthru_cmd64& kernel) {
    EXPECT_EQ(kernel.cdw10, 77u);  // whole each time
    EXPECT_EQ(kernel.result, 0u);
    kernel.result = 5;
    errno = EINTR;
    return ++calls <= cancelled ? -1 : status;
  };
  const Command command{0x06, 1, {77}};
  EXPECT_EQ(by_ioctl(pass, command, {}, "x").value(), 5u);
  EXPECT_EQ(calls, 4);
  calls = cancelled = 0;
  status = 0x0281;
  EXPECT_EQ(by_ioctl(pass, command, {}, "x").error().code, EIO);
  EXPECT_EQ(calls, 1);
  calls = 0;
  cancelled = 1000;
  EXPECT_EQ(by_ioctl(pass, command, {}, "x").error().code, EINTR);
  EXPECT_EQ(calls, 10);
}

TEST(Linux, TheCharacterDeviceOfANamespaceIsKnownByItsName) {
  EXPECT_EQ(block_name_of("/dev/ng0n1"), "nvme0n1");
  EXPECT_EQ(block_name_of("/dev/ng12n34"), "nvme12n34");
  for (const char* other : {"/dev/nvme0n1", "/dev/ng0n1p1", "/dev/ng0", "/dev/ng0n", "/dev/ngn1",
                            "/dev/xng0n1", "/dev/ng", "ng0n1/x", ""})
    EXPECT_EQ(block_name_of(other), "") << other;
}

class Sys : public ::testing::Test {
 protected:
  Sys() {
    const char* base = std::getenv("TMPDIR");
    root_ = std::string(base != nullptr ? base : "/tmp") + "/streamfs-sys.XXXXXX";
    SFS_ASSERT(mkdtemp(root_.data()) != nullptr);
  }
  ~Sys() override { std::filesystem::remove_all(root_); }
  void put(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ + "/block/nvme0n1/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::string root_;
};

TEST_F(Sys, TheQueueSaysHowMuchOneCommandMayTransfer) {
  EXPECT_EQ(max_transfer_bytes(root_, "nvme0n1"), kBlockSize);
  put("queue/max_hw_sectors_kb", "256");
  put("queue/max_segments", "127");
  EXPECT_EQ(max_transfer_bytes(root_, "nvme0n1"), 256u * 1024);
  put("queue/max_segments", "33");
  EXPECT_EQ(max_transfer_bytes(root_, "nvme0n1"), 32u * 4096);
}

TEST_F(Sys, PartitionsAreSeen) {
  put("queue/max_segments", "1");
  EXPECT_TRUE(partitions_of(root_, "nvme0n1").empty());
  EXPECT_TRUE(partitions_of(root_, "nvme9n9").empty());
  put("nvme0n1p2/partition", "2");
  put("nvme0n1p1/partition", "1");
  EXPECT_EQ(partitions_of(root_, "nvme0n1"), (std::vector<std::string>{"nvme0n1p1", "nvme0n1p2"}));
}

// /dev/null completes any command on newer kernels (6.18 does); without a device, what shows that
// entries of this size go round.
class Ring : public ::testing::Test {
 protected:
  ~Ring() override { close(fd_); }
  // Nothing where there can be none, and why; any other failure is one.
  std::unique_ptr<CommandRing> open_ring(unsigned depth) {
    auto ring = CommandRing::open(fd_, 1, depth);
    if (ring.ok()) return std::move(*ring);
    why_not_ = ring.error().message();
    EXPECT_TRUE(cannot_be(ring.error())) << why_not_;
    return nullptr;
  }
  // Kernels and sandboxes without rings, or whose /dev/null takes no commands.
  static bool cannot_be(const Error& error) {
    return error.code == ENOSYS || error.code == EPERM || error.code == EOPNOTSUPP;
  }
  const int fd_ = open("/dev/null", O_RDWR | O_CLOEXEC);
  std::string why_not_;
};

TEST_F(Ring, EveryCommandIsAnsweredOnceWhoeverSendsIt) {
  std::atomic<int> answered{0};
  {
    const auto ring = open_ring(4);
    if (ring == nullptr) GTEST_SKIP() << why_not_;
    std::vector<std::thread> senders;
    for (int t = 0; t < 3; ++t)
      senders.emplace_back([&] {
        for (int i = 0; i < 500; ++i)
          ring->start(flush(1), {}, [&](const Result<uint32_t>& done) {
            EXPECT_TRUE(done.ok());
            ++answered;
          });
      });
    for (std::thread& sender : senders) sender.join();
    EXPECT_TRUE(ring->wait_for(flush(1), {}).ok());
  }
  EXPECT_EQ(answered, 1500);
}

TEST_F(Ring, AnAnswerMayStartMoreThanTheQueueHolds) {
  int answered = 0;
  {
    const auto ring = open_ring(2);
    if (ring == nullptr) GTEST_SKIP() << why_not_;
    for (int i = 0; i < 2; ++i)
      ring->start(flush(1), {}, [&](const Result<uint32_t>&) {
        for (int j = 0; j < 10; ++j)
          ring->start(flush(1), {}, [&](const Result<uint32_t>&) { ++answered; });
      });
    while (uring::drive()) {
    }
  }
  EXPECT_EQ(answered, 20);
}

TEST_F(Ring, APauseIsWaitedForAndOthersAreAnsweredMeanwhile) {
  const auto ring = open_ring(4);
  if (ring == nullptr) GTEST_SKIP() << why_not_;
  std::vector<std::string> order;
  const auto began = std::chrono::steady_clock::now();
  ring->start_after(std::chrono::milliseconds(30), flush(1), {}, [&](const Result<uint32_t>& done) {
    EXPECT_TRUE(done.ok());
    order.emplace_back("late");
  });
  ring->start(flush(1), {}, [&](const Result<uint32_t>&) { order.emplace_back("soon"); });
  while (uring::drive()) {
  }
  EXPECT_EQ(order, (std::vector<std::string>{"soon", "late"}));
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(30));
}

TEST_F(Ring, AFileThatTakesNoCommandsIsTold) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const auto ring = CommandRing::open(file, 1, 4);
  ASSERT_FALSE(ring.ok());
  EXPECT_TRUE(cannot_be(ring.error())) << ring.error().message();
  close(file);
}

// A filter that lets io_uring_setup(2) fail as on a kernel, or in a sandbox, without it.
void refuse_rings() {
  const std::array<sock_filter, 4> program = {{
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_io_uring_setup},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  }};
  const sock_fprog filter{static_cast<uint16_t>(program.size()),
                          const_cast<sock_filter*>(program.data())};
  SFS_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  SFS_ASSERT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

TEST_F(Ring, WithoutIoUringTheReasonIsTold) {
  const auto outcome = [&] {
    refuse_rings();
    const auto ring = CommandRing::open(fd_, 1, 4);
    _exit(!ring.ok() && ring.error().code == ENOSYS ? 0 : 1);
  };
  EXPECT_EXIT(outcome(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace streamfs::nvme
