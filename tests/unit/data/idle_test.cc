// Idle time: when it begins, that the device gets it, and that a request ends it at once.
#include "fuse-fs/blockdev/idle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/data/activity.h"
#include "fuse-fs/data/idle_detector.h"
#include "fuse-fs/data/idle_scheduler.h"
#include "fuse-fs/data/trim_queue.h"
#include "tests/unit/data/ram_device.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

using blockdev::IdleLimits;
using blockdev::IdleMeans;
using blockdev::IdleWork;
using State = IdleStatus::State;

constexpr uint64_t kQuiet = IdleDetector::kQuietMsLeast;

TEST(IdleDetectorTest, QuietHasToLast) {
  IdleDetector detector;
  EXPECT_FALSE(detector.look(0, 5, false));
  EXPECT_FALSE(detector.look(kQuiet - 1, 5, false));
  EXPECT_TRUE(detector.look(kQuiet, 5, false));
  EXPECT_FALSE(detector.look(kQuiet + 1, 6, false));
}

TEST(IdleDetectorTest, ARequestThatTakesLongIsNoIdleTime) {
  IdleDetector detector;
  for (uint64_t now = 0; now < 10 * kQuiet; now += 100) EXPECT_FALSE(detector.look(now, 1, true));
  EXPECT_FALSE(detector.look(10 * kQuiet, 1, false));
}

TEST(IdleDetectorTest, ShortGapsTakeLongerQuietAndLongOnesLess) {
  IdleDetector detector;
  uint64_t now = 0, begun = 0;
  // Idle time of `idle_ms`, and what it took to be seen.
  const auto quiet_before = [&](uint64_t idle_ms) {
    const uint64_t since = now;
    detector.look(now, ++begun, false);
    while (!detector.look(now, begun, false)) now += 10;
    const uint64_t quiet_ms = now - since;
    now += idle_ms;
    detector.look(now, ++begun, false);
    return quiet_ms;
  };
  EXPECT_EQ(quiet_before(10), kQuiet);
  EXPECT_EQ(quiet_before(10), 2 * kQuiet);
  for (int i = 0; i < 10; ++i) quiet_before(10);
  EXPECT_EQ(quiet_before(60'000), IdleDetector::kQuietMsMost);
  EXPECT_EQ(quiet_before(60'000), IdleDetector::kQuietMsMost / 2);
  for (int i = 0; i < 10; ++i) quiet_before(60'000);
  EXPECT_EQ(quiet_before(60'000), kQuiet);
}

class IdleSchedulerTest : public testing::Test {
 protected:
  IdleSchedulerTest() { device_.idle_means = IdleMeans::kInCall; }
  IdleScheduler& scheduler(IdleWorkWhen when = IdleWorkWhen::kAuto) {
    if (!scheduler_) {
      scheduler_ = std::make_unique<IdleScheduler>(
          device_, activity_, clock_,
          IdleScheduler::Setup{when, [this] { return battery_.load(); },
                               [this]() -> Result<void> {
                                 ++reclaimed_;
                                 return {};
                               }});
    }
    return *scheduler_;
  }
  // Programs ask nothing for so long.
  void quiet(uint64_t milliseconds) {
    scheduler().round();
    clock_.ms += milliseconds;
    scheduler().round();
  }

  RamDevice device_{16};
  Activity activity_;
  RigClock clock_;
  std::atomic<bool> battery_{false};
  std::atomic<int> reclaimed_{0};
  std::unique_ptr<IdleScheduler> scheduler_;
};

TEST_F(IdleSchedulerTest, TheDeviceGetsIdleTimeAndNoOther) {
  activity_.touch();
  quiet(kQuiet - 1);
  EXPECT_EQ(device_.idle_begun, 0u);
  EXPECT_EQ(scheduler().status().state, State::kBusy);
  quiet(1);
  EXPECT_EQ(device_.idle_begun, 1u);
  EXPECT_EQ(device_.idle_ended, 1u);
  EXPECT_EQ(reclaimed_, 1);
}

TEST_F(IdleSchedulerTest, WhenNothingIsLeftItRestsUntilTheNextRequest) {
  quiet(kQuiet);
  quiet(60'000);
  EXPECT_EQ(device_.idle_begun, 1u);
  EXPECT_EQ(scheduler().status().state, State::kRested);
  activity_.touch();
  quiet(kQuiet);
  EXPECT_EQ(device_.idle_begun, 2u);
}

TEST_F(IdleSchedulerTest, UnfinishedWorkGoesOn) {
  device_.on_idle = [](const IdleLimits&) { return IdleWork{false, 4096, 1}; };
  quiet(kQuiet);
  quiet(100);
  EXPECT_EQ(device_.idle_begun, 3u);  // round by round
  EXPECT_EQ(scheduler().status().erases, 3u);
}

// On a busy machine a thread may wait for a processor longer than that: the best of some tries.
constexpr int kTries = 5;
constexpr uint64_t kStopUsMost = 10'000;

TEST_F(IdleSchedulerTest, ARequestEndsTheWorkWithinTenMilliseconds) {
  using SteadyClock = std::chrono::steady_clock;
  uint64_t best_us = UINT64_MAX;
  for (int i = 0; i < kTries && best_us >= kStopUsMost; ++i) {
    std::atomic<bool> working{false};
    device_.on_idle = [&](const IdleLimits& limits) {
      working = true;
      const auto most = SteadyClock::now() + std::chrono::seconds(10);
      while (!limits.stop() && SteadyClock::now() < most) std::this_thread::yield();
      return IdleWork{false, 0, 0};
    };
    scheduler_.reset();
    std::thread program([&] {
      while (!working) std::this_thread::yield();
      activity_.touch();
    });
    quiet(kQuiet);
    program.join();
    const IdleStatus status = scheduler().status();
    EXPECT_EQ(status.interrupted, 1u);
    EXPECT_EQ(status.state, State::kBusy);
    EXPECT_GT(status.slowest_stop_us, 0u);
    best_us = std::min(best_us, status.slowest_stop_us);
  }
  EXPECT_LT(best_us, kStopUsMost);
}

TEST_F(IdleSchedulerTest, ADeviceThatWorksByItselfIsToldOfARequest) {
  device_.idle_means = IdleMeans::kByItself;
  uint64_t best_us = UINT64_MAX;
  for (int i = 0; i < kTries && best_us >= kStopUsMost; ++i) {
    device_.idle_begun = device_.idle_ended = 0;
    scheduler_.reset();
    std::thread program([&] {
      while (device_.idle_begun == 0) std::this_thread::yield();
      EXPECT_EQ(device_.idle_ended, 0u);
      activity_.touch();
    });
    quiet(kQuiet);
    program.join();
    EXPECT_EQ(device_.idle_ended, 1u);
    EXPECT_EQ(scheduler().status().interrupted, 1u);
    best_us = std::min(best_us, scheduler().status().slowest_stop_us);
  }
  EXPECT_LT(best_us, kStopUsMost);
}

TEST_F(IdleSchedulerTest, ADeviceThatMustNotWorkAloneForLongIsStoppedWithoutARequest) {
  device_.idle_means = IdleMeans::kByItself;
  device_.by_itself_ms_max = 20;
  quiet(kQuiet);
  EXPECT_EQ(device_.idle_ended, 1u);
  EXPECT_EQ(scheduler().status().interrupted, 0u);
}

TEST_F(IdleSchedulerTest, OnBatteryNothingIsDoneUnlessAlwaysWasSaid) {
  battery_ = true;
  quiet(kQuiet);
  EXPECT_EQ(device_.idle_begun, 0u);
  EXPECT_EQ(scheduler().status().state, State::kOnBattery);
  battery_ = false;
  quiet(11'000);  // it does not look at the power supply all the time
  EXPECT_EQ(device_.idle_begun, 1u);
  scheduler_.reset();
  battery_ = true;
  scheduler(IdleWorkWhen::kAlways);
  quiet(kQuiet);
  EXPECT_EQ(device_.idle_begun, 2u);
}

TEST_F(IdleSchedulerTest, AFailingDeviceIsCountedAndLeftAlone) {
  device_.on_idle = [](const IdleLimits&) -> Result<IdleWork> { return Error{EIO, "worn"}; };
  quiet(kQuiet);
  quiet(60'000);
  EXPECT_EQ(scheduler().status().failed, 1u);
  EXPECT_EQ(scheduler().status().last_error.substr(0, 4), "worn");
  EXPECT_EQ(device_.idle_begun, 1u);
}

TEST_F(IdleSchedulerTest, OffMeansNoThreadAndSaysSo) {
  scheduler(IdleWorkWhen::kOff).start();
  scheduler().stop();
  EXPECT_EQ(scheduler().status().state, State::kOff);
}

TEST_F(IdleSchedulerTest, MaintenanceAskedForGivesWayAndPreparingForPowerOffDoesNot) {
  device_.on_idle = [&](const IdleLimits& limits) {
    activity_.touch();
    return IdleWork{!limits.stop(), 0, 0};
  };
  EXPECT_FALSE(scheduler().work(IdleScheduler::Asked::kMaintain, 1000)->finished);
  {
    const Activity::Request program(activity_);
    EXPECT_FALSE(scheduler().work(IdleScheduler::Asked::kMaintain, 1000)->finished);
    EXPECT_EQ(device_.idle_begun, 1u) << "nothing is begun while a request is under way";
    const auto done = scheduler().work(IdleScheduler::Asked::kPowerOff, 1000);
    EXPECT_TRUE(done->finished);
    EXPECT_EQ(device_.flushes, 1u);
  }
  EXPECT_EQ(scheduler().status().poweroffs_prepared, 1u);
}

TEST(IdleMountTest, AMountsRequestsAreItsActivity) {
  Rig::Options options;
  options.mount.idle_work = IdleWorkWhen::kAlways;
  Rig rig(options);
  const auto rests = [&] {
    for (const uint64_t ms : {uint64_t{0}, IdleDetector::kQuietMsMost, uint64_t{60'000}}) {
      rig.clock().ms += ms;
      rig.fs().idle_scheduler().round();
    }
    return rig.ram().idle_begun.exchange(0);
  };
  EXPECT_EQ(rests(), 1u);
  EXPECT_EQ(rests(), 0u) << "nothing was asked since";
  const InodeId id = rig.create("a");
  EXPECT_EQ(rests(), 1u);
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(kBlockSize, 1)).ok());
  EXPECT_EQ(rests(), 1u);
  rig.read(id, 0, kBlockSize);
  EXPECT_EQ(rests(), 1u);
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  EXPECT_EQ(rests(), 1u);
  ASSERT_TRUE(rig.fs().truncate(id, 0).ok());
  EXPECT_EQ(rests(), 1u);
}

TEST(IdleMountTest, PreparedForPowerOffEverythingIsDurable) {
  Rig rig;
  const InodeId id = rig.create("a");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(5 * kBlockSize, 7)).ok());
  const auto done = rig.fs().prepare_poweroff(1000);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_TRUE(done->finished);
  rig.power_cut(3);
  EXPECT_EQ(rig.read(rig.lookup("a"), 0, 5 * kBlockSize), Rig::filled(5 * kBlockSize, 7));
}

// How long it takes to trim five runs that lie apart, 3 ms each, while programs are at work.
std::chrono::steady_clock::duration trimmed_in(TrimQueue::Pace pace) {
  Rig::Options options;
  options.faulty = false;
  Rig rig(options);
  std::vector<InodeId> files;
  for (int i = 0; i < 10; ++i) {
    files.push_back(rig.create(std::to_string(i)));
    EXPECT_TRUE(rig.write(files.back(), 0, Rig::filled(20 * kBlockSize, i)).ok());
    EXPECT_TRUE(rig.fs().fsync(files.back(), false).ok());
  }
  for (int i = 0; i < 10; i += 2)
    EXPECT_TRUE(rig.fs().unlink(rig.fs().root(), std::to_string(i)).ok());
  for (const InodeId id : files) rig.fs().forget(id, 1);
  rig.ram().on_trim = [&] {
    rig.read(files.back(), 0, kBlockSize);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  };
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(rig.fs().maintenance().reclaim(pace).ok());
  EXPECT_EQ(rig.ram().trimmed_blocks, 100u);
  return std::chrono::steady_clock::now() - begun;
}

TEST(TrimPaceTest, TrimsTakeATenthOfTheTimeUnlessSomebodyWaitsForThem) {
  const auto paced = trimmed_in(TrimQueue::Pace::kGivesWay);
  EXPECT_GE(paced, std::chrono::milliseconds(5 * 10 * 3 * 9 / 10));
  EXPECT_LT(trimmed_in(TrimQueue::Pace::kNow), paced / 2);
}

// Files of 3 and 5 blocks where units have 8: none of them holds a unit of its own.
class JoinedTrimTest : public ::testing::Test {
 protected:
  JoinedTrimTest() : rig_(options()) {
    for (int i = 0; i < 32; ++i) {
      files_.push_back(rig_.create(std::to_string(i)));
      const uint64_t blocks = i % 2 == 0 ? 3 : 5;
      EXPECT_TRUE(rig_.write(files_.back(), 0, Rig::filled(blocks * kBlockSize, i)).ok());
      EXPECT_TRUE(rig_.fs().fsync(files_.back(), false).ok());
    }
    rig_.remount();  // no pStream fills these regions any more
    rig_.ram().frees_only_units_of(8);
    rig_.ram().on_trim_of = [this](BlockNo first, uint64_t count) {
      for (uint64_t at = round_up(first.value, 8); at + 8 <= first.value + count; at += 8)
        freed_units_.insert(at);
    };
  }
  static Rig::Options options() {
    Rig::Options options;
    options.faulty = false;
    return options;
  }
  void remove(int from, int step) {
    for (int i = from; i < 32; i += step)
      EXPECT_TRUE(rig_.fs().unlink(rig_.fs().root(), std::to_string(i)).ok());
    EXPECT_TRUE(rig_.fs().maintenance().reclaim().ok());
  }
  Rig rig_;
  std::vector<InodeId> files_;
  std::set<uint64_t> freed_units_;
};

TEST_F(JoinedTrimTest, WhatIsLeftOfAUnitIsTrimmedWithItsNeighbour) {
  remove(0, 2);
  EXPECT_TRUE(freed_units_.empty()) << "half of each unit lives";
  remove(1, 2);
  EXPECT_GE(freed_units_.size(), 15u) << "16 units of a file of 3 and one of 5 blocks";
}

TEST_F(JoinedTrimTest, AUnitInWhichSomethingLivesIsNeverTrimmed) {
  rig_.ram().on_trim_of = nullptr;
  remove(0, 2);
  remove(1, 4);
  rig_.remount();
  for (int i = 3; i < 32; i += 4)
    EXPECT_EQ(rig_.read(rig_.lookup(std::to_string(i)), 0, 5 * kBlockSize),
              Rig::filled(5 * kBlockSize, i));
  EXPECT_TRUE(rig_.check().problems.empty());
}

TEST(TrimFreeTest, AllFreeSpaceIsTrimmedAndNothingElse) {
  Rig::Options options;
  options.faulty = false;
  Rig rig(options);
  const InodeId kept = rig.create("kept"), gone = rig.create("gone");
  ASSERT_TRUE(rig.write(kept, 0, Rig::filled(300 * kBlockSize, 1)).ok());
  ASSERT_TRUE(rig.write(gone, 0, Rig::filled(500 * kBlockSize, 2)).ok());
  ASSERT_TRUE(rig.fs().fsync(kept, false).ok());
  const uint64_t free = rig.fs().space().free_blocks;
  rig.ram().trimmed_blocks = 0;
  uint64_t bytes = 0, calls = 0;
  for (std::optional<BlockNo> at = BlockNo{0}; at;) {
    const auto some = rig.fs().trim_free(*at, 0);  // a run a call
    ASSERT_TRUE(some.ok()) << some.error().message();
    bytes += some->bytes;
    at = some->next;
    ++calls;
  }
  EXPECT_GT(calls, 1u);
  EXPECT_EQ(bytes, rig.ram().trimmed_blocks * kBlockSize);
  EXPECT_EQ(rig.fs().space().free_blocks, free);
  // Regions that are being filled are left out: one for each of two streams here at most.
  EXPECT_GE(bytes / kBlockSize + 2 * meta::BlockAllocator::kRegionBlocks, free);
  EXPECT_LE(bytes / kBlockSize, free);
  rig.remount();
  EXPECT_EQ(rig.read(rig.lookup("kept"), 0, 300 * kBlockSize), Rig::filled(300 * kBlockSize, 1));
  EXPECT_EQ(rig.read(rig.lookup("gone"), 0, 500 * kBlockSize), Rig::filled(500 * kBlockSize, 2));
  EXPECT_TRUE(rig.check().problems.empty());
}

TEST(TrimFreeTest, WritersFindRoomWhileFreeSpaceIsTrimmed) {
  Rig::Options options;
  options.faulty = false;
  Rig rig(options);
  const InodeId id = rig.create("a");
  uint64_t written = 0;
  rig.ram().on_trim = [&] {
    if (written >= 20) return;
    ++written;
    EXPECT_TRUE(rig.write(id, written * kBlockSize, Rig::filled(kBlockSize, 1)).ok());
  };
  ASSERT_TRUE(rig.fs().trim_free(BlockNo{0}, 1000).ok());
  EXPECT_GT(written, 0u);
}

}  // namespace
}  // namespace streamfs::data
