// What a full disk tells to whom, without a kernel; and the order of WRITEs.
#include "fuse-fs/frontend/full_disk.h"

#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/types.h"
#include "fuse-fs/frontend/write_order.h"

namespace streamfs::frontend {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;
constexpr InodeId kLossy{7}, kSound{8};

class SetClock final : public Clock {
 public:
  Timestamp now() override { return {}; }
  uint64_t monotonic_ms() override { return milliseconds; }
  std::atomic<uint64_t> milliseconds{1000};
};

void until(const std::function<bool()>& holds) {
  for (int i = 0; i < 10'000 && !holds(); ++i) usleep(1000);
  ASSERT_TRUE(holds());
}

class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    disk.start({
        .free_bytes = [this] { return free_bytes.load(); },
        .limit_dirty = [this](std::optional<uint64_t> bytes) { limit = bytes.value_or(0); },
        .expire_attributes = [this](InodeId id) { step('x', id); },
        .wait_for_writers = [this](InodeId id) { step('l', id); },
        .write_back =
            [this](InodeId id) {
              step('w', id);
              during_write_back(id);
            },
        .take_error = [this](InodeId id) { step('e', id); },
        .correct_size = [this](InodeId id) { step('c', id); },
        .corrects = [](pid_t, InodeId) { return false; },
        .is_removed = [this](InodeId id) { return removed == id.value; },
        .reply_later = [](const std::function<void()>& task) { task(); },
    });
  }
  void step(char what, InodeId id) {
    const MutexLock lock(mutex);
    steps += what;
    steps += std::to_string(id.value);
  }
  std::string seen() {
    const MutexLock lock(mutex);
    return steps;
  }
  bool asks(InodeId id) {
    return disk.ask(id, [this] { ++told; });
  }

  SetClock clock;
  std::atomic<uint64_t> free_bytes{0}, limit{1};
  std::atomic<uint64_t> removed{0};
  std::atomic<int> told{0};
  std::function<void(InodeId)> during_write_back = [](InodeId) {};
  Mutex mutex;
  std::string steps;
  FullDisk disk{clock};  // last: its thread uses the others
};

TEST_F(FullDiskTest, WhoLostNothingIsToldNothing) {
  EXPECT_FALSE(asks(kLossy));
  disk.not_stored(kSound, 0);
  EXPECT_FALSE(asks(kLossy));
}

TEST_F(FullDiskTest, ALossIsSettledAndToldToOneWrite) {
  disk.not_stored(kLossy, 4096);
  EXPECT_TRUE(asks(kLossy));
  until([this] { return told == 1; });
  EXPECT_TRUE(seen().ends_with("x7l7w7e7c7"));
  EXPECT_FALSE(asks(kLossy));
  EXPECT_EQ(disk.lost_from(kLossy), 4096U);
  EXPECT_FALSE(disk.is_losing(kLossy));
  clock.milliseconds += 2000;
  until([this] { return !disk.lost_from(kLossy); });
}

TEST_F(FullDiskTest, TheErrorIsLeftToCloseWhileNobodyAsks) {
  disk.not_stored(kLossy, 4096);
  until([this] { return seen() == "x7l7w7c7"; });
  EXPECT_TRUE(asks(kLossy));
  until([this] { return told == 1; });
  EXPECT_EQ(seen(), "x7l7w7c7x7l7w7e7c7");
}

TEST_F(FullDiskTest, WhatIsLostMeanwhileIsSettledBeforeAnyoneIsTold) {
  std::promise<void> asked;
  const std::shared_future<void> gate = asked.get_future().share();
  std::atomic<int> rounds{0};
  during_write_back = [&](InodeId id) {
    gate.wait();
    if (++rounds <= 2) disk.not_stored(id, 0);
  };
  disk.not_stored(kLossy, 4096);
  EXPECT_TRUE(asks(kLossy));
  EXPECT_EQ(disk.lost_from(kLossy), 4096U);
  asked.set_value();
  until([this] { return told == 1; });
  EXPECT_EQ(rounds, 3);
}

TEST_F(FullDiskTest, FewWaitAndAllAreTold) {
  std::promise<void> go;
  const std::shared_future<void> gate = go.get_future().share();
  during_write_back = [&](InodeId) { gate.wait(); };
  disk.not_stored(kLossy, 0);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(asks(kLossy));
  EXPECT_EQ(told, 3);  // two wait
  go.set_value();
  until([this] { return told == 5; });
}

TEST_F(FullDiskTest, AnOldLossIsNotToldToANewWriterWhoHasSpace) {
  disk.not_stored(kLossy, 0);
  until([this] { return seen().ends_with("c7"); });
  clock.milliseconds += 3000;
  free_bytes = kGib;
  EXPECT_FALSE(asks(kLossy));
  disk.not_stored(kLossy, 0);
  disk.settled_elsewhere(kLossy);
  EXPECT_FALSE(asks(kLossy));
}

TEST_F(FullDiskTest, TheKernelMayHoldLessDirtyAsTheFreeSpaceShrinks) {
  until([this] { return limit == 32U << 20; });
  EXPECT_TRUE(disk.is_near());
  free_bytes = uint64_t{1} << 50;
  disk.wrote(uint64_t{1} << 30);
  until([this] { return limit == 0; });
  EXPECT_FALSE(disk.is_near());
}

TEST_F(FullDiskTest, ARemovedFileIsToldOfAndNotHeld) {
  removed = kLossy.value;
  disk.not_stored(kLossy, 0);
  EXPECT_TRUE(asks(kLossy));
  until([this] { return told == 1; });
  EXPECT_EQ(seen().find('w'), std::string::npos);
  EXPECT_FALSE(disk.holds_removed());
}

TEST_F(FullDiskTest, AFileThatIsRemovedWhileItIsSettledIsHeldForAMoment) {
  during_write_back = [&](InodeId id) {
    EXPECT_FALSE(disk.holds_removed());
    removed = id.value;
    EXPECT_TRUE(disk.holds_removed());
  };
  disk.not_stored(kLossy, 0);
  until([this] { return seen().ends_with("c7"); });
  EXPECT_TRUE(disk.holds_removed());
  clock.milliseconds += 1000;
  EXPECT_FALSE(disk.holds_removed());
}

TEST_F(FullDiskTest, TheEndTellsWhoWaits) {
  std::promise<void> go;
  const std::shared_future<void> gate = go.get_future().share();
  during_write_back = [&](InodeId) { gate.wait(); };
  disk.not_stored(kLossy, 0);
  EXPECT_TRUE(asks(kLossy));
  std::thread ending([this] { disk.stop(); });
  go.set_value();
  ending.join();
  EXPECT_EQ(told, 1);
}

TEST(WriteOrder, AWriteBeyondTheEndWaitsForALowerOneOfItsFile) {
  WriteOrder order;
  std::atomic<bool> went{false};
  std::optional<WriteOrder::Turn> lower(std::in_place, order, kLossy, 0);
  std::thread higher([&] {
    WriteOrder::Turn turn(order, kLossy, 8192);
    turn.wait_until([] { return false; });
    went = true;
  });
  WriteOrder::Turn other(order, kSound, 8192);
  other.wait_until([] { return false; });  // nobody is lower: a moment, no more
  usleep(20'000);
  EXPECT_FALSE(went);
  lower.reset();
  higher.join();
}

}  // namespace
}  // namespace streamfs::frontend
