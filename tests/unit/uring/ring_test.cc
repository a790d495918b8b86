// The ring that files and NVMe commands share, on requests that need no device.
#include "fuse-fs/uring/ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace streamfs::uring {
namespace {

// Does nothing, or reads from a file, and then calls `then`, which says whether it is over.
class Probe final : public Request {
 public:
  using Then = std::function<bool(const Answer&)>;
  explicit Probe(Then then, int fd = -1) : then_(std::move(then)), fd_(fd) {}
  void prepare(io_uring_sqe& entry) override {
    if (fd_ < 0) return;
    io_uring_prep_read(&entry, fd_, bytes_.data(), sizeof bytes_, 0);
    entry.rw_flags = RWF_NOWAIT;  // nothing there yet: EAGAIN
  }
  bool completed(const Answer& answer) override { return then_(answer); }

 private:
  const Then then_;
  const int fd_;
  std::array<std::byte, 16> bytes_{};
};

class RingTest : public ::testing::Test {
 protected:
  // Kernels and sandboxes without rings.
  std::unique_ptr<Ring> open_ring(unsigned depth) {
    auto ring = Ring::open(depth);
    if (ring.ok()) return std::move(*ring);
    why_not_ = ring.error().message();
    EXPECT_TRUE(ring.error().code == ENOSYS || ring.error().code == EPERM) << why_not_;
    return nullptr;
  }
  std::string why_not_;
};

void drive_all() {
  while (drive()) {
  }
}

TEST_F(RingTest, EveryRequestIsAnsweredOnceInTheThreadThatSentIt) {
  std::atomic<int> answered{0};
  const auto ring = open_ring(4);
  if (ring == nullptr) GTEST_SKIP() << why_not_;
  std::vector<std::thread> senders;
  for (int t = 0; t < 3; ++t)
    senders.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        ring->start(
            std::make_unique<Probe>([&, sender = std::this_thread::get_id()](const Answer& answer) {
              EXPECT_EQ(answer.result, 0);
              EXPECT_EQ(sender, std::this_thread::get_id());
              ++answered;
              return true;
            }));
        EXPECT_TRUE(i % 7 != 0 || drive());
      }
      if (answered % 2 == 0) drive_all();  // or the thread's end does
    });
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(answered, 1500);
  EXPECT_FALSE(drive());
}

TEST_F(RingTest, ARingEndsBeforeOrAfterTheThreadsThatUsedIt) {
  auto first = open_ring(4), second = open_ring(4);
  if (first == nullptr || second == nullptr) GTEST_SKIP() << why_not_;
  int answered = 0;
  const auto ask = [&](Ring& ring) {
    ring.start(std::make_unique<Probe>([&](const Answer&) { return ++answered > 0; }));
  };
  std::promise<void> asked, gone;
  std::thread other([&] {
    ask(*first);
    ask(*second);
    drive_all();
    asked.set_value();
    gone.get_future().wait();
    ask(*second);
  });
  asked.get_future().wait();
  first.reset();
  gone.set_value();
  other.join();
  EXPECT_EQ(answered, 3);
  ask(*second);
  second.reset();  // waits for what is its own thread's
  EXPECT_EQ(answered, 4);
}

TEST_F(RingTest, MoreThanTheQueueHoldsWaitsForItsTurn) {
  int answered = 0;
  const auto ring = open_ring(2);
  if (ring == nullptr) GTEST_SKIP() << why_not_;
  ring->start(std::make_unique<Probe>([&](const Answer&) {
    for (int i = 0; i < 50; ++i)
      ring->start(std::make_unique<Probe>([&](const Answer&) { return ++answered > 0; }));
    return true;
  }));
  drive_all();
  EXPECT_EQ(answered, 50);
}

TEST_F(RingTest, ARequestIsSubmittedUntilItSaysThatItIsOver) {
  int times = 0;
  {
    const auto ring = open_ring(1);
    if (ring == nullptr) GTEST_SKIP() << why_not_;
    ring->start(std::make_unique<Probe>([&](const Answer&) { return ++times == 3; }));
    ring->start(std::make_unique<Probe>([&](const Answer&) {
      EXPECT_EQ(times, 3);  // of one place in the queue, it had that
      return true;
    }));
  }
  EXPECT_EQ(times, 3);
}

TEST_F(RingTest, WhatMayBeHadLaterIsAskedForAgainUntilItIsEnough) {
  auto ring = open_ring(2);
  if (ring == nullptr) GTEST_SKIP() << why_not_;
  std::array<int, 2> ends{};
  SFS_ASSERT(pipe2(ends.data(), O_CLOEXEC) == 0);
  int result = 0;
  const auto ask = [&] {
    ring->start(std::make_unique<Probe>(
        [&](const Answer& answer) {
          result = answer.result;
          return true;
        },
        ends[0]));
  };
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(write(ends[1], "four", 4), 4);
  });
  ask();
  drive_all();
  EXPECT_EQ(result, 4);
  writer.join();
  ask();
  drive_all();  // nobody writes
  EXPECT_EQ(result, -EAGAIN);
  for (const int end : ends) close(end);
}

TEST_F(RingTest, WhoRefusesRingsIsNamed) {
  const char* base = std::getenv("TMPDIR");
  std::string proc = std::string(base != nullptr ? base : "/tmp") + "/streamfs-proc.XXXXXX";
  SFS_ASSERT(mkdtemp(proc.data()) != nullptr);
  const auto names = [&](int error, const std::string& text) {
    return refusal(error, proc).find(text) != std::string::npos;
  };
  EXPECT_TRUE(names(EPERM, "sandbox"));
  std::filesystem::create_directories(proc + "/sys/kernel");
  std::ofstream(proc + "/sys/kernel/io_uring_disabled") << "0\n";
  EXPECT_TRUE(names(EPERM, "sandbox"));
  std::ofstream(proc + "/sys/kernel/io_uring_disabled") << "2\n";
  EXPECT_TRUE(names(EPERM, "kernel.io_uring_disabled = 2"));
  EXPECT_TRUE(names(ENOSYS, "no io_uring in this kernel"));
  EXPECT_TRUE(names(EMFILE, "io_uring_setup"));
  std::filesystem::remove_all(proc);
}

TEST_F(RingTest, AnErrorOfTheKernelIsTheAnswer) {
  const auto ring = open_ring(2);
  if (ring == nullptr) GTEST_SKIP() << why_not_;
  int result = 0;
  const int closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(closed);
  ring->start(std::make_unique<Probe>(
      [&](const Answer& answer) {
        result = answer.result;
        return true;
      },
      closed));
  drive_all();
  EXPECT_EQ(result, -EBADF);
}

}  // namespace
}  // namespace streamfs::uring
