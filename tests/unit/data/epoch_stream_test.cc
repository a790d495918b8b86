// Which pStream the writes of an epoch go to, where a flush makes the device pad what is open.
#include "fuse-fs/data/epoch_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "base/types.h"
#include "base/wire/model_table.h"
#include "fuse-fs/data/filesystem.h"
#include "tests/unit/data/ram_device.h"
#include "tests/unit/data/rig.h"
#include "tests/unit/placement/published_model.h"

namespace streamfs::data {
namespace {

constexpr PStreamId kHot{3}, kCold{1};

TEST(EpochStream, WhatIsLittleGoesWhereTheFirstOfItsEpochWent) {
  RamDevice ram(16);
  EpochStream epoch(ram, false);
  EXPECT_EQ(epoch.of(kHot, 1), kHot);
  EXPECT_EQ(epoch.of(kCold, 1), kHot);
  ASSERT_TRUE(epoch.flush().ok());
  EXPECT_EQ(epoch.of(kCold, 1), kCold);
  EXPECT_EQ(epoch.of(kHot, 1), kCold);
}

TEST(EpochStream, WhatBeginsAnEpochMaySayWhereItGoes) {
  RamDevice ram(16);
  EpochStream epoch(ram, false);
  EXPECT_EQ(epoch.of(kHot, 1, kCold), kCold);
  EXPECT_EQ(epoch.of(kHot, 1, kHot), kCold) << "it does not begin";
}

TEST(EpochStream, OfMuchOnlyTheBeginningGoesTogether) {
  RamDevice ram(16);
  EpochStream epoch(ram, false);
  EXPECT_EQ(epoch.of(kHot, EpochStream::kTogetherBlocks - 1), kHot);
  EXPECT_EQ(epoch.of(kCold, 1), kHot);
  EXPECT_EQ(epoch.of(kCold, 1), kCold);
  EXPECT_EQ(epoch.of(kHot, 1), kHot);
  ASSERT_TRUE(epoch.flush().ok());
  EXPECT_EQ(epoch.of(kCold, 1), kCold);
  EXPECT_EQ(epoch.of(kHot, 1), kCold) << "the next one begins anew";
}

TEST(EpochStream, WhereAFlushIsFreeAllGoWhereTheyAreToGo) {
  RamDevice ram(16);
  EpochStream epoch(ram, true);
  EXPECT_EQ(epoch.of(kHot, 1), kHot);
  EXPECT_EQ(epoch.of(kCold, 1), kCold);
}

TEST(EpochStream, WritersSideBySideAgreeOnOne) {
  RamDevice ram(16);
  EpochStream epoch(ram, false);
  for (int round = 0; round < 200; ++round) {
    std::atomic<uint32_t> streams{0};  // a bit each
    std::vector<std::thread> writers;
    for (uint16_t wanted = 0; wanted < 3; ++wanted)
      writers.emplace_back([&, wanted] {
        for (int i = 0; i < 4; ++i) streams |= 1U << epoch.of(PStreamId{wanted}, 1).value;
      });
    for (std::thread& each : writers) each.join();
    EXPECT_EQ(streams & (streams - 1), 0U) << "round " << round;
    ASSERT_TRUE(epoch.flush().ok());
  }
}

// ---- On a mount

struct TwoFiles {
  explicit TwoFiles(bool plp, Rig::Options made = {})
      : rig(options(plp, std::move(made))), hot(rig.create("hot")), cold(rig.create("cold")) {
    hot_stream = rig.fs().hint_name(hot, "hot")->pstream;
    cold_stream = rig.fs().hint_name(cold, "cold")->pstream;
  }
  static Rig::Options options(bool plp, Rig::Options made) {
    made.volatile_cache = false;
    made.mount.write_behind_mib = 0;  // each write goes where it goes at once
    made.mount.plp = plp;
    return made;
  }
  // Where a block of it goes now.
  blockdev::Placement write(InodeId id) {
    EXPECT_TRUE(rig.write(id, 0, Rig::filled(kBlockSize, 1)).ok());
    return rig.ram().last_tag.placement;
  }
  blockdev::Placement placement(PStreamId stream) { return rig.ram().placement(stream); }

  Rig rig;
  const InodeId hot, cold;
  PStreamId hot_stream, cold_stream;
};

// A table that sends a single page elsewhere than long requests.
PStreamId where_a_page_goes(bool plp) {
  TwoFiles two(plp);
  const auto memory = two.rig.fs().placement().shared_memory();
  placement::PublishedModel model(memory.model_fd, memory.model_bytes);
  const uint32_t plain = wire::shape_of(std::numeric_limits<uint32_t>::max(), 0, wire::kAgeNew);
  model.publish(1, [&](uint32_t shape) { return shape == plain ? kCold.value : kHot.value; });
  two.rig.clock().ms += 2000;
  two.rig.fs().maintenance().timer_round();
  EXPECT_TRUE(two.rig.fs().sync().ok());
  const blockdev::Placement to = two.write(two.hot);
  return to == two.placement(kCold) ? kCold : kHot;
}

TEST(EpochStream, GoesWhereWhatIsNewOfItsFirstFileGoes) {
  EXPECT_EQ(where_a_page_goes(false), kCold);
  EXPECT_EQ(where_a_page_goes(true), kHot) << "and with protection where its page goes";
}

TEST(EpochStream, AnFsyncBeginsTheNextEpoch) {
  TwoFiles two(false);
  ASSERT_NE(two.hot_stream, two.cold_stream);
  EXPECT_EQ(two.write(two.hot), two.placement(two.hot_stream));
  EXPECT_EQ(two.write(two.cold), two.placement(two.hot_stream));
  ASSERT_TRUE(two.rig.fs().fsync(two.cold, false).ok());
  EXPECT_EQ(two.write(two.cold), two.placement(two.cold_stream));
  EXPECT_EQ(two.write(two.hot), two.placement(two.cold_stream));
}

TEST(EpochStream, AFlushOfTheLogAloneBeginsTheNextEpochToo) {
  TwoFiles two(false, Rig::with_log());
  ASSERT_TRUE(two.rig.fs().sync().ok());
  EXPECT_EQ(two.write(two.hot), two.placement(two.hot_stream));
  two.rig.create("name");
  ASSERT_TRUE(two.rig.fs().fsync(two.rig.fs().root(), false).ok());
  EXPECT_EQ(two.write(two.cold), two.placement(two.cold_stream));
}

TEST(EpochStream, OfAProtectedDeviceEachKeepsItsOwn) {
  TwoFiles two(true);
  EXPECT_EQ(two.write(two.hot), two.placement(two.hot_stream));
  EXPECT_EQ(two.write(two.cold), two.placement(two.cold_stream));
}

}  // namespace
}  // namespace streamfs::data
