// New data that waits in memory, what never goes to the device, and what does.
#include "fuse-fs/data/write_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/types.h"
#include "fuse-fs/blockdev/device.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/data/filesystem.h"
#include "tests/unit/data/write_cache_rig.h"

namespace streamfs::data::write_cache_test {
namespace {

TEST(WriteCache, WhatIsCachedIsReadAndGoesOutWithAFlush) {
  Buffered one;
  one.write(9, 5, 3);
  ASSERT_TRUE(one.put(10, 1));
  ASSERT_TRUE(one.put(12, 2, 2));
  EXPECT_EQ(one.seen(9, 6), Values({5, 1, 5, 2, 2, 0}));
  EXPECT_EQ(one.there(9, 6), Values({5, 5, 5, 0, 0, 0}));
  EXPECT_EQ(one.cache.counts().cached_blocks, 3U);
  ASSERT_TRUE(one.flush().ok());
  EXPECT_EQ(one.there(9, 6), Values({5, 1, 5, 2, 2, 0}));
  EXPECT_EQ(one.ram().last_tag.vstream, kTag.vstream);
  EXPECT_EQ(one.ram().last_tag.placement, kTag.placement);
  EXPECT_EQ(one.cache.counts().cached_blocks, 0U);
  EXPECT_EQ(one.ram().flushes, 1U);
}

TEST(WriteCache, WhatFollowsIsOneRequest) {
  Buffered one;
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(one.put(20 + i, static_cast<int>(i)));
  ASSERT_TRUE(one.flush().ok());
  EXPECT_EQ(one.ram().writes, 1U);
  EXPECT_EQ(one.there(20, 8), Values({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(WriteCache, WhatIsDiscardedOrTrimmedIsNeverWritten) {
  Buffered one;
  ASSERT_TRUE(one.put(8, 3, 6));
  one.cache.discard(BlockNo{9}, 2);
  ASSERT_TRUE(one.cache.trim(BlockNo{12}, 1).ok());
  ASSERT_TRUE(one.flush().ok());
  EXPECT_EQ(one.there(8, 6), Values({3, 0, 0, 3, 0, 3}));
  EXPECT_EQ(one.cache.counts().discarded_blocks, 3U);
}

TEST(WriteCache, AWriteWinsOverWhatWasCached) {
  Buffered one;
  ASSERT_TRUE(one.put(8, 3, 4));
  one.write(9, 6, 2);
  EXPECT_EQ(one.seen(8, 4), Values({3, 6, 6, 3}));
  ASSERT_TRUE(one.flush().ok());
  EXPECT_EQ(one.there(8, 4), Values({3, 6, 6, 3}));
}

TEST(WriteCache, OnlyWhatIsFreshOrCachedAlreadyIsTaken) {
  Buffered one;
  EXPECT_FALSE(one.put(8, 1, 1, false));
  ASSERT_TRUE(one.put(8, 1, 2));
  EXPECT_TRUE(one.put(8, 2, 2, false));
  EXPECT_FALSE(one.put(9, 3, 2, false)) << "block 10 is not cached";
  EXPECT_EQ(one.seen(8, 3), Values({2, 2, 0}));
  ASSERT_TRUE(one.flush().ok());
  EXPECT_FALSE(one.put(8, 4, 1, false)) << "the block is not cached after a flush";
}

TEST(WriteCache, FlushesHaveToWriteAtARateAndWhatDiesIsFree) {
  Buffered one;
  ASSERT_TRUE(one.put(0, 1, kCacheMax));
  EXPECT_FALSE(one.put(40, 1)) << "there is no room";
  ASSERT_TRUE(one.flush().ok());
  EXPECT_FALSE(one.put(40, 1)) << "the flush used up the rate";
  one.clock.ms += 2;  // 16 MiB a second: 8 blocks
  EXPECT_TRUE(one.put(40, 1, 8));
  EXPECT_FALSE(one.put(50, 1));
  one.cache.discard(BlockNo{40}, 8);
  EXPECT_TRUE(one.put(40, 1, 8)) << "discarded blocks return their charge";
  one.clock.ms += 60'000;
  EXPECT_TRUE(one.put(0, 2, kCacheMax - 8));
  EXPECT_FALSE(one.put(60, 2));
}

TEST(WriteCache, WhatItsOwnFsyncAsksForIsFree) {
  Buffered one;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(one.put(0, 1, kCacheMax)) << "round " << round;
    one.cache.asked_for(InodeId{6});
    one.cache.asked_for(kOwner);
    one.cache.asked_for(kOwner);
    ASSERT_TRUE(one.flush().ok());
  }
  ASSERT_TRUE(one.put(0, 1, kCacheMax));
  one.cache.asked_for(InodeId{6});
  ASSERT_TRUE(one.flush().ok());
  EXPECT_FALSE(one.put(0, 1)) << "another's";
}

TEST(WriteCache, WhatCannotBeWrittenStaysCachedAndItsInodeIsNotSafe) {
  Buffered one;
  const InodeId other{6};
  ASSERT_TRUE(one.put(8, 3));
  ASSERT_TRUE(one.cache.put(other, BlockNo{10}, blocks_of(4), kTag, true));
  ASSERT_TRUE(one.put(12, 5));
  one.device.set_faults({.fail_writes_after = 1});  // the first run can be written
  EXPECT_FALSE(one.flush().ok());
  EXPECT_EQ(one.there(8, 5), Values({3, 0, 0, 0, 0}));
  EXPECT_EQ(one.seen(8, 5), Values({3, 0, 4, 0, 5}));
  EXPECT_EQ(one.cache.counts().cached_blocks, 2U);
  EXPECT_EQ(one.cache.safe(kOwner).error().code, EIO);
  EXPECT_FALSE(one.cache.safe(other).ok());
  EXPECT_TRUE(one.cache.safe(InodeId{7}).ok());
  one.cache.discard(BlockNo{12}, 1);
  one.device.set_faults({});
  ASSERT_TRUE(one.cache.write_out().ok());
  EXPECT_FALSE(one.cache.safe(other).ok()) << "the data is written but not flushed";
  ASSERT_TRUE(one.flush().ok());
  EXPECT_TRUE(one.cache.safe(other).ok());
  EXPECT_TRUE(one.cache.safe(kOwner).ok());
  EXPECT_EQ(one.there(10, 3), Values({4, 0, 0}));
}

// The device's blocks there may be unreadable; nobody needs them.
TEST(WriteCache, WhatIsAllCachedIsReadWithoutTheDevice) {
  Buffered one;
  ASSERT_TRUE(one.put(8, 3, 2));
  one.device.set_faults({.fail_reads_after = 0});
  EXPECT_EQ(one.seen(8, 2), Values({3, 3}));
}

TEST(WriteCache, AWriteThatFailsLeavesWhatWasCached) {
  Buffered one;
  ASSERT_TRUE(one.put(8, 3, 2));
  one.device.set_faults({.fail_writes_after = 1});
  const auto bytes = blocks_of(6);
  {
    blockdev::IoBatch batch(one.cache);
    batch.write(BlockNo{8}, bytes, {});
    EXPECT_FALSE(batch.wait().ok());
  }
  one.device.set_faults({});
  EXPECT_EQ(one.seen(8, 2), Values({3, 3}));
}

TEST(WriteCache, NothingIsCachedUntilTheFlushUnderWayIsOver) {
  Buffered one;
  {
    const WriteCache::Still still(one.cache);
    EXPECT_FALSE(one.put(8, 1));
  }
  EXPECT_TRUE(one.put(8, 1));
  WriteCache none(one.device, 0, one.clock);
  EXPECT_FALSE(none.put(kOwner, BlockNo{8}, blocks_of(1), kTag, true));
}

// The device is asked for all of it, where it is being written as well.
TEST(WriteCache, WhatIsBeingWrittenIsReadBesideWhatIsThere) {
  RigClock clock;
  RamDevice device(kDeviceBlocks);
  WriteCache cache(device, kCacheMax, clock);
  std::ranges::copy(blocks_of(4), device.block(9));
  ASSERT_TRUE(cache.put(kOwner, BlockNo{8}, blocks_of(3), kTag, true));
  std::atomic<bool> written{false}, seen{false};  // relaxed: what they order, nobody checks
  device.on_write = [&] {
    written.store(true, std::memory_order_relaxed);
    while (!seen.load(std::memory_order_relaxed)) std::this_thread::yield();
  };
  std::thread flusher([&] { EXPECT_TRUE(cache.write_out().ok()); });
  while (!written.load(std::memory_order_relaxed)) std::this_thread::yield();
  std::vector<std::byte> both(2 * kBlockSize);
  blockdev::IoBatch batch(cache);
  batch.read(BlockNo{8}, both);
  EXPECT_TRUE(batch.wait().ok());
  seen.store(true, std::memory_order_relaxed);
  flusher.join();
  std::vector<std::byte> expected = blocks_of(3);
  const auto beside = blocks_of(4);
  expected.insert(expected.end(), beside.begin(), beside.end());
  EXPECT_EQ(both, expected);
}

// Each thread has blocks of its own, as writers of one block have the inode's lock between them.
TEST(WriteCache, ThreadsSeeTheirOwn) {
  Buffered one(true);
  std::atomic<bool> over{false};
  std::thread flusher([&] {
    while (!over) ASSERT_TRUE(one.flush().ok());
  });
  std::vector<std::thread> writers;
  for (uint64_t w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      std::mt19937 random(static_cast<uint32_t>(w));
      std::map<uint64_t, int> holds;
      for (int step = 0; step < 3000; ++step) {
        const uint64_t block = w * 16 + random() % 16;
        const int value = 1 + static_cast<int>(random() % 200);
        switch (random() % 4) {
          case 0:
            one.write(block, value);
            holds[block] = value;
            break;
          case 1:
            one.clock.ms += 1;
            if (!one.put(block, value, 1, !holds.contains(block))) one.write(block, value);
            holds[block] = value;
            break;
          case 2:  // its file is gone
            one.cache.discard(BlockNo{block}, 1);
            ASSERT_TRUE(one.cache.trim(BlockNo{block}, 1).ok());
            holds.erase(block);
            break;
          default:
            if (holds.contains(block)) {
              ASSERT_EQ(one.seen(block, 1), Values({holds[block]})) << "block " << block;
            }
        }
      }
      ASSERT_TRUE(one.flush().ok());
      for (const auto& [block, value] : holds) EXPECT_EQ(one.there(block, 1), Values({value}));
    });
  for (std::thread& each : writers) each.join();
  over = true;
  flusher.join();
  EXPECT_EQ(one.cache.counts().cached_blocks, 0U);
}

// ---- On a mount

constexpr uint64_t kFileBytes = 20 * kBlockSize + 100;

TEST(WriteCache, ATemporaryFileNeverReachesTheDevice) {
  Rig rig;
  ASSERT_TRUE(rig.fs().sync().ok());
  const uint64_t before = rig.ram().written_bytes;
  for (const bool truncated : {true, false}) {
    const InodeId id = rig.create("temporary");
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(kFileBytes, 4)).ok());
    ASSERT_TRUE(rig.write(id, kFileBytes, Rig::filled(kFileBytes, 5)).ok());
    EXPECT_EQ(rig.read(id, 0, kFileBytes), Rig::filled(kFileBytes, 4));
    if (truncated) {
      ASSERT_TRUE(rig.fs().truncate(id, 0).ok());
    }
    ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "temporary").ok());
    rig.fs().forget(id, 1);  // its blocks are freed later
    ASSERT_TRUE(rig.fs().sync().ok());
  }
  EXPECT_EQ(rig.ram().written_bytes, before);
  EXPECT_GT(rig.fs().status()->never_written_bytes, 3 * kFileBytes);
  EXPECT_EQ(rig.fs().status()->write_cache_bytes, 0U);
}

TEST(WriteCache, AFileWithoutANameIsThereForWhoHasItOpen) {
  Rig rig;
  const InodeId id = rig.create("temporary");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(kFileBytes, 4)).ok());
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "temporary").ok());
  EXPECT_EQ(rig.read(id, 0, kFileBytes), Rig::filled(kFileBytes, 4));
  ASSERT_TRUE(rig.fs().sync().ok());
  EXPECT_EQ(rig.read(id, 0, kFileBytes), Rig::filled(kFileBytes, 4));
  rig.fs().forget(id, 1);
}

TEST(WriteCache, AnFsyncWritesWhatIsCached) {
  Rig rig;
  const InodeId id = rig.create("kept");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(kFileBytes, 4)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(kFileBytes, 5)).ok());  // in place
  ASSERT_TRUE(rig.fs().fsync(id, true).ok());
  ASSERT_TRUE(rig.write(id, kFileBytes, Rig::filled(kFileBytes, 6)).ok());  // and this is lost
  for (uint64_t seed = 1; seed < 6; ++seed) {
    rig.power_cut(seed);
    const InodeId there = rig.lookup("kept");
    EXPECT_EQ(rig.fs().attributes(there)->size, kFileBytes);
    EXPECT_EQ(rig.read(there, 0, kFileBytes), Rig::filled(kFileBytes, 5)) << "seed " << seed;
  }
}

TEST(WriteCache, AnFsyncThatCannotWriteSaysSoAndTheNextOneCan) {
  for (const bool log : {false, true}) {
    Rig rig(log ? Rig::with_log() : Rig::Options());
    const InodeId id = rig.create("kept"), other = rig.create("other");
    ASSERT_TRUE(rig.fs().sync().ok());
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(kFileBytes, 4)).ok());
    rig.device().set_faults({.fail_writes_after = 0});
    EXPECT_EQ(rig.fs().fsync(id, false).error().code, EIO);
    EXPECT_EQ(rig.read(id, 0, kFileBytes), Rig::filled(kFileBytes, 4));
    rig.device().set_faults({});
    ASSERT_TRUE(rig.fs().fsync(other, false).ok()) << "another's data is no reason";
    ASSERT_TRUE(rig.fs().fsync(id, false).ok()) << "nothing was lost";
    EXPECT_FALSE(rig.fs().status()->degraded_read_only);
    rig.power_cut(1);
    EXPECT_EQ(rig.read(rig.lookup("kept"), 0, kFileBytes), Rig::filled(kFileBytes, 4));
  }
}

// If one file's cached data cannot be written, sync() returns EIO and every other file's data
// becomes durable.
TEST(WriteCache, OneFileThatCannotBeWrittenIsNobodyElsesTrouble) {
  Rig::Options options;
  options.mount.write_behind_mib = 1;
  Rig rig(options);
  const InodeId bad = rig.create("bad"), good = rig.create("good");
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.write(bad, 0, Rig::filled(1 << 20, 4)).ok());
  ASSERT_TRUE(rig.write(good, 0, Rig::filled(kFileBytes, 5)).ok()) << "there is no room for it";
  rig.device().set_faults({.fail_writes_after = 0});
  EXPECT_EQ(rig.fs().sync().error().code, EIO);
  EXPECT_EQ(rig.fs().sync().error().code, EIO) << "and it is said again";
  EXPECT_FALSE(rig.fs().status()->degraded_read_only);
  rig.device().set_faults({});
  rig.power_cut(1);
  EXPECT_EQ(rig.fs().attributes(rig.lookup("bad"))->size, 0U);
  EXPECT_EQ(rig.read(rig.lookup("good"), 0, kFileBytes), Rig::filled(kFileBytes, 5));
}

// A write during an fsync is on the device when the fsync's record names it, and when its flush
// covers it. With a log the record comes first.
TEST(WriteCache, NothingIsCachedThatAnFsyncUnderWayWouldName) {
  for (const bool log : {false, true}) {
    Rig::Options options = log ? Rig::with_log() : Rig::Options();
    options.faulty = false;
    Rig rig(options);
    const InodeId id = rig.create("kept");
    ASSERT_TRUE(rig.fs().sync().ok());
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(kBlockSize, 4)).ok());
    int writes = 0;
    rig.ram().on_write = [&] {
      if (++writes > 1) return;
      ASSERT_TRUE(rig.write(id, kBlockSize, Rig::filled(kBlockSize, 5)).ok());
      EXPECT_EQ(rig.fs().status()->write_cache_bytes, 0U) << (log ? "with a log" : "without");
    };
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    EXPECT_GT(writes, 1);
    rig.ram().on_write = {};
  }
}

// A record that is conditional on its data comes before the flush: a kill has no restore after it
// that would look whether the data is there.
TEST(WriteCache, NoRecordNamesWhatIsStillCached) {
  Rig rig(Rig::with_log());
  const InodeId id = rig.create("kept");
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(kFileBytes, 4)).ok());
  rig.device().set_faults({.fail_writes_after = 0});
  EXPECT_FALSE(rig.fs().fsync(id, false).ok());
  rig.device().set_faults({});
  rig.kill();
  EXPECT_EQ(rig.fs().attributes(rig.lookup("kept"))->size, 0U);
}

}  // namespace
}  // namespace streamfs::data::write_cache_test
