// Blocks and units of what was removed or replaced: trimmed, and free again.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/types.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/data/filesystem.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

TEST(Freed, BlocksAreTrimmedAndComeBack) {
  Rig rig;
  const uint64_t free = rig.fs().space().free_blocks;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(1 << 20, 'a')).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "f").ok());
  rig.fs().forget(id, 1);
  EXPECT_EQ(rig.ram().trimmed_blocks, 0U);
  ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
  ASSERT_TRUE(rig.device().flush().ok());
  EXPECT_EQ(rig.ram().trimmed_blocks, 256U);
  EXPECT_EQ(rig.fs().space().free_blocks, free);
  EXPECT_EQ(rig.fs().status()->trims_pending_blocks, 0U);
}

// No reclaimer comes by here: what was removed is freed by who needs it.
TEST(Freed, DirectoriesThatComeAndGoNeedNoMoreThanOneHas) {
  Rig::Options options;
  options.meta_bytes = 2 << 20;
  Rig rig(options);
  const InodeId root = rig.fs().root();
  for (int round = 0; round < 2000; ++round) {
    const auto made = rig.fs().create(root, "d", S_IFDIR | 0700, 0, {}, {});
    ASSERT_TRUE(made.ok()) << round << ": " << made.error().message();
    const auto file = rig.fs().create(made->id, "x", S_IFREG | 0600, 0, {}, {});
    ASSERT_TRUE(file.ok()) << round << ": " << file.error().message();
    ASSERT_TRUE(rig.fs().unlink(made->id, "x").ok());
    rig.fs().forget(file->id, 1);
    ASSERT_TRUE(rig.fs().rmdir(root, "d").ok());
    rig.fs().forget(made->id, 1);
  }
}

TEST(Freed, WhatAFailedWriteLeftOnTheDeviceIsTrimmed) {
  Rig rig(Rig::writing_at_once());
  const uint64_t free = rig.fs().space().free_blocks;
  const InodeId id = rig.create("f");
  blockdev::Faults faults;
  faults.fail_writes_after = 0;
  faults.tear_failing_writes = true;
  rig.device().set_faults(faults);
  EXPECT_EQ(rig.write(id, 0, Rig::filled(1 << 20, 'a')).error().code, EIO);
  rig.device().set_faults({});
  ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
  ASSERT_TRUE(rig.device().flush().ok());
  EXPECT_EQ(rig.ram().trimmed_blocks, 256U);
  EXPECT_EQ(rig.fs().space().free_blocks, free);
}

// Its extents need a unit, and all are held by directories that are gone.
TEST(Freed, AWriteFindsTheUnitsOfWhatWasRemoved) {
  Rig::Options options;
  options.meta_bytes = 2 << 20;
  Rig rig(options);
  const InodeId root = rig.fs().root(), file = rig.create("f");
  std::vector<std::pair<InodeId, InodeId>> made;  // directories, and what is in each
  for (;;) {
    const auto directory =
        rig.fs().create(root, "d" + std::to_string(made.size()), S_IFDIR | 0700, 0, {}, {});
    if (!directory.ok()) break;
    const auto inside = rig.fs().create(directory->id, "x", S_IFREG | 0600, 0, {}, {});
    if (!inside.ok()) break;
    made.emplace_back(directory->id, inside->id);
  }
  for (size_t i = 0; i < made.size(); ++i) {
    ASSERT_TRUE(rig.fs().unlink(made[i].first, "x").ok());
    rig.fs().forget(made[i].second, 1);
    ASSERT_TRUE(rig.fs().rmdir(root, "d" + std::to_string(i)).ok());
    rig.fs().forget(made[i].first, 1);
  }
  for (uint64_t i = 0; i < 8; ++i)
    ASSERT_TRUE(rig.write(file, i * 2 * kBlockSize, Rig::filled(kBlockSize, 'a')).ok()) << i;
}

// Some devices take long for a trim, and a writer that finds no room must not wait for all of them.
TEST(Freed, AWriterWaitsForRoomAndNotForEveryTrim) {
  Rig::Options options;
  options.volatile_cache = false;
  Rig rig(options);
  constexpr uint64_t kRun = 16 * kBlockSize;
  std::vector<InodeId> files;
  const auto name = [](size_t file) { return "f" + std::to_string(file); };
  do {
    files.push_back(rig.create(name(files.size())));
  } while (rig.write(files.back(), 0, Rig::filled(kRun, 'a')).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  for (size_t i = 0; i < files.size(); i += 2) {  // runs that do not touch
    ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), name(i)).ok());
    rig.fs().forget(files[i], 1);
  }
  std::atomic<int> trims{0};
  rig.ram().on_trim = [&] {
    ++trims;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  const InodeId other = rig.create("other");
  uint64_t at = 0;
  for (; trims == 0; at += kRun) ASSERT_TRUE(rig.write(other, at, Rig::filled(kRun, 'b')).ok());
  EXPECT_LT(trims, 20) << "of " << files.size() / 2;
  EXPECT_GT(rig.fs().status()->trims_pending_blocks, 0U) << "what nobody needed is trimmed later";
  rig.ram().on_trim = {};
  while (rig.write(other, at, Rig::filled(kRun, 'b')).ok()) at += kRun;
  EXPECT_EQ(rig.fs().status()->trims_pending_blocks, 0U) << "before anybody is told ENOSPC";
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "other").ok());
  rig.fs().forget(other, 1);
  const uint64_t before = rig.ram().trimmed_blocks;
  ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
  EXPECT_GT(rig.ram().trimmed_blocks, before) << "nobody waits for room now";
}

// So does who unmounts: what is left is trimmed by the next mount.
TEST(Freed, AnUnmountWaitsForTwoSecondsOfTrims) {
  Rig::Options options = Rig::writing_at_once();
  options.volatile_cache = false;
  Rig rig(options);
  constexpr size_t kFiles = 800;
  constexpr uint64_t kRun = 2 * kBlockSize;
  const auto name = [](size_t file) { return "f" + std::to_string(file); };
  std::vector<InodeId> files;
  for (size_t i = 0; i < kFiles; ++i) {
    files.push_back(rig.create(name(i)));
    ASSERT_TRUE(rig.write(files.back(), 0, Rig::filled(kRun, 'a')).ok());
  }
  ASSERT_TRUE(rig.fs().sync().ok());
  const uint64_t free_before = rig.fs().space().free_blocks;
  for (size_t i = 0; i < kFiles; i += 2) {
    ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), name(i)).ok());
    rig.fs().forget(files[i], 1);
  }
  rig.ram().on_trim = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  const auto began = std::chrono::steady_clock::now();
  rig.remount();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5)) << "8 s for all";
  rig.ram().on_trim = {};
  EXPECT_GT(rig.fs().status()->trims_pending_blocks, 0U);
  rig.fs().maintenance().reclaim_round();
  EXPECT_EQ(rig.fs().status()->trims_pending_blocks, 0U);
  EXPECT_EQ(rig.fs().space().free_blocks, free_before + kFiles);
  EXPECT_EQ(rig.ram().trimmed_blocks, kFiles);
}

// A temporary file that is gone before it was committed.
TEST(Freed, BlocksThatNoRecordNamedAreTrimmedAsWell) {
  Rig rig;
  const uint64_t free = rig.fs().space().free_blocks;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(1 << 20, 'a')).ok());
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "f").ok());
  rig.fs().forget(id, 1);
  ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
  ASSERT_TRUE(rig.device().flush().ok());
  EXPECT_EQ(rig.ram().trimmed_blocks, 256U);
  EXPECT_EQ(rig.fs().space().free_blocks, free);
  EXPECT_EQ(rig.fs().status()->trims_pending_blocks, 0U);
}

TEST(Freed, BlocksAreReclaimedSoonerWhereLittleIsFree) {
  Rig rig;
  constexpr uint32_t kResting = 500, kPressed = 100;
  const auto free_share = [&] {
    const meta::Space space = rig.fs().engine().space();
    return static_cast<double>(space.free_blocks) / static_cast<double>(space.data_blocks);
  };
  EXPECT_EQ(rig.fs().maintenance().reclaim_interval_ms(), kResting);
  const InodeId id = rig.create("f");
  const auto bytes = Rig::filled(64 * kBlockSize, 1);
  for (uint64_t offset = 0; free_share() >= 0.12; offset += bytes.size()) {
    if (free_share() > 0.13) {
      EXPECT_EQ(rig.fs().maintenance().reclaim_interval_ms(), kResting);
    }
    ASSERT_TRUE(rig.write(id, offset, bytes).ok());
  }
  EXPECT_EQ(rig.fs().maintenance().reclaim_interval_ms(), kPressed);
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "f").ok());
  rig.fs().forget(id, 1);
  ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
  EXPECT_EQ(rig.fs().maintenance().reclaim_interval_ms(), kResting);
}

// The replaced blocks are live to the device until the commit, and so would eat its spare.
TEST(Freed, WhatAFileWrittenAnewReplacesIsReclaimedWithinASecondWhereLittleIsFree) {
  for (const bool little : {false, true}) {
    Rig rig;
    const auto free_share = [&] {
      const meta::Space space = rig.fs().engine().space();
      return static_cast<double>(space.free_blocks) / static_cast<double>(space.data_blocks);
    };
    const InodeId id = rig.create("f"), rest = rig.create("rest");
    const auto bytes = Rig::filled(64 * kBlockSize, 1);
    ASSERT_TRUE(rig.write(id, 0, bytes).ok());
    for (uint64_t at = 0; little && free_share() >= 0.12; at += bytes.size())
      ASSERT_TRUE(rig.write(rest, at, bytes).ok());
    ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
    ASSERT_TRUE(rig.fs().truncate(id, 0).ok());
    ASSERT_TRUE(rig.write(id, 0, bytes).ok());
    const auto trimmed_by_a_round = [&] {
      const uint64_t before = rig.ram().trimmed_blocks;
      rig.fs().maintenance().reclaim_round();
      EXPECT_TRUE(rig.device().flush().ok());
      return rig.ram().trimmed_blocks - before;
    };
    EXPECT_EQ(trimmed_by_a_round(), 0U);
    rig.clock().ms += 500;
    EXPECT_EQ(trimmed_by_a_round(), little ? 64U : 0U);
    EXPECT_EQ(rig.fs().status()->dirty_inodes, little ? 0U : 1U);
  }
}

TEST(Freed, AnOrphanOfTheLastMountGivesItsBlocksBack) {
  Rig rig;
  const uint64_t free = rig.fs().space().free_blocks;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(1 << 20, 'a')).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "f").ok());  // still open
  EXPECT_EQ(rig.read(id, 0, 5), Rig::filled(5, 'a'));
  rig.power_cut(3);
  ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
  EXPECT_EQ(rig.fs().space().free_blocks, free);
}

}  // namespace
}  // namespace streamfs::data
