// After a flush of DATA failed, or metadata could not be made durable, nothing is written to DATA
// again: the device keeps what the last good flush left.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/final_flush_device.h"
#include "tests/unit/data/ram_device.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

struct Traffic {
  uint64_t writes, trimmed, released, idle;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
Traffic traffic_of(const RamDevice& ram) {
  return {ram.writes, ram.trimmed_blocks, ram.released.size(), ram.idle_begun};
}

// Everything that happens by itself, for long enough that each of it is due.
void let_time_pass(Rig& rig) {
  for (int second = 0; second < 60; ++second) {
    rig.clock().ms += 1000;
    rig.fs().maintenance().timer_round();
    rig.fs().maintenance().reclaim_round();
    rig.fs().maintenance().follow_round();
  }
}

Rig::Options with_log_at_once() {
  Rig::Options options = Rig::with_log();
  options.volatile_cache = false;  // the device below counts what it is given
  return options;
}

// Files that are dirty, files that were removed, and records that no flush has covered.
void leave_work(Rig& rig) {
  for (int i = 0; i < 8; ++i) {
    const InodeId id = rig.create("f" + std::to_string(i));
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(64 * kBlockSize, i)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(8 * kBlockSize, i + 1)).ok());
  }
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "f7").ok());
}

TEST(FinalFlush, AfterAFailedFlushNothingReachesData) {
  Rig rig(with_log_at_once());
  leave_work(rig);
  rig.device().set_faults({.fail_flushes_after = 0});
  EXPECT_EQ(rig.fs().sync().error().code, EIO);
  rig.device().set_faults({});
  const Traffic then = traffic_of(rig.ram());
  let_time_pass(rig);
  EXPECT_EQ(rig.fs().sync().error().code, EROFS);
  EXPECT_FALSE(rig.fs().maintain(100).ok());
  EXPECT_FALSE(rig.fs().unmount().ok());
  EXPECT_EQ(traffic_of(rig.ram()), then);
}

// The timer alone would close epochs, and ship the log, again and again.
TEST(FinalFlush, AfterAFailedWriteOfTheLogNothingReachesData) {
  Rig rig(with_log_at_once());
  leave_work(rig);
  rig.device().set_faults({.fail_writes_after = 0});
  EXPECT_FALSE(rig.fs().sync().ok());
  rig.device().set_faults({});
  ASSERT_TRUE(rig.fs().status()->degraded_read_only);
  const Traffic then = traffic_of(rig.ram());
  let_time_pass(rig);
  EXPECT_EQ(traffic_of(rig.ram()), then);
}

class FinalFlushDeviceTest : public testing::Test {
 protected:
  FinalFlushDeviceTest() {
    auto ram = std::make_unique<RamDevice>(16);
    ram_ = ram.get();
    device_ = std::make_unique<blockdev::FinalFlushDevice>(std::move(ram));
    ram_->on_flush = [] { return Result<void>(Error{EIO, "injected"}); };
    EXPECT_FALSE(device_->flush().ok());
    ram_->on_flush = {};
    before_ = traffic_of(*ram_);
  }
  void expect_refused(const Result<void>& done) {
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().context, "injected");
    EXPECT_EQ(traffic_of(*ram_), before_);
  }
  template <typename T>
  static Result<void> outcome(const Result<T>& done) {
    return done.ok() ? Result<void>() : Result<void>(done.error());
  }

  RamDevice* ram_ = nullptr;
  std::unique_ptr<blockdev::FinalFlushDevice> device_;
  Traffic before_{};
};

TEST_F(FinalFlushDeviceTest, RefusesWrites) {
  blockdev::IoBatch batch(*device_);
  const std::vector<std::byte> block(kBlockSize);
  batch.write(BlockNo{1}, block, {});
  expect_refused(batch.wait());
}

TEST_F(FinalFlushDeviceTest, RefusesFlushes) {
  const uint64_t flushes = ram_->flushes;
  expect_refused(device_->flush());
  EXPECT_EQ(ram_->flushes, flushes);
}

TEST_F(FinalFlushDeviceTest, RefusesTrims) {
  expect_refused(device_->trim(BlockNo{1}, 1));
}

TEST_F(FinalFlushDeviceTest, RefusesReleases) {
  expect_refused(device_->release(PStreamId{1}));
}

TEST_F(FinalFlushDeviceTest, RefusesMaintenance) {
  expect_refused(outcome(device_->begin_idle({})));
  expect_refused(outcome(device_->prepare_poweroff({})));
}

// The device tells the error to one of two flushes only.
TEST(FinalFlushDevice, AFlushIsNoSuccessWhileOneThatOverlapsItMayFail) {
  auto ram = std::make_unique<RamDevice>(16);
  RamDevice& device = *ram;
  blockdev::FinalFlushDevice final(std::move(ram));
  std::promise<void> first_began, second_ended;
  std::atomic<int> calls{0};
  device.on_flush = [&]() -> Result<void> {
    if (calls++ > 0) {
      second_ended.set_value();
      return {};
    }
    first_began.set_value();
    second_ended.get_future().wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return Error{EIO, "injected"};
  };
  std::thread first([&] { EXPECT_FALSE(final.flush().ok()); });
  first_began.get_future().wait();
  EXPECT_FALSE(final.flush().ok());
  first.join();
}

TEST_F(FinalFlushDeviceTest, GoesOnReading) {
  blockdev::IoBatch batch(*device_);
  std::vector<std::byte> block(kBlockSize);
  batch.read(BlockNo{1}, block);
  EXPECT_TRUE(batch.wait().ok());
}

}  // namespace
}  // namespace streamfs::data
