// The intent log under a filesystem: what an fsync costs, and what a cut leaves of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/data/intent_rig.h"

namespace streamfs::data::intent_test {
namespace {

// Lets the mount begin its logs, so that later counts have only what a test does.
void begin(Rig& rig) {
  const InodeId id = rig.create("first");
  ASSERT_TRUE(rig.write(id, 0, blocks(1, 1)).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
}

struct Costs {
  uint64_t flushes, writes, fences;
};
Costs costs(Rig& rig) {
  return {rig.device().flushes(), rig.device().writes(), rig.fs().status()->pmem.fences};
}

// The entries are fenced before the record, so that no cut leaves the record alone.
TEST(Intent, AnFsyncOfNewDataIsTwoFences) {
  Rig rig(Rig::with_intent_log());
  begin(rig);
  const InodeId id = rig.create("f");
  const Costs before = costs(rig);
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(rig.write(id, i * kBlockSize, blocks(1, 3)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, i % 2 == 0).ok());
  }
  const Costs after = costs(rig);
  EXPECT_EQ(after.flushes, before.flushes);
  EXPECT_EQ(after.writes, before.writes);
  EXPECT_EQ(after.fences - before.fences, 20);
}

TEST(Intent, AnFsyncOfAnOverwriteIsTwoFencesFromTheSecondOn) {
  Rig rig(Rig::with_intent_log());
  begin(rig);
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, blocks(4, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  ASSERT_TRUE(rig.fs().sync().ok());  // home
  const Costs before = costs(rig);
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(rig.write(id, i % 4 * kBlockSize, blocks(1, 3)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, true).ok());
  }
  const Costs after = costs(rig);
  EXPECT_EQ(after.flushes, before.flushes);
  EXPECT_EQ(after.writes, before.writes);
  EXPECT_EQ(after.fences - before.fences, 20);
  EXPECT_TRUE(rig.check().problems.empty());
}

// Returns the numbers of fsyncs that the log took and refused as large, of files of `length`
// blocks.
std::array<uint64_t, 2> fsyncs_of(Rig& rig, const std::vector<uint64_t>& lengths) {
  const IntentStatus before = rig.fs().status()->intent;
  for (const uint64_t length : lengths) {
    const InodeId id = rig.create("file" + std::to_string(length));
    EXPECT_TRUE(rig.write(id, 0, blocks(length, 1)).ok());
    EXPECT_TRUE(rig.fs().fsync(id, false).ok());
  }
  const IntentStatus after = rig.fs().status()->intent;
  return {after.fsyncs - before.fsyncs, after.refused_large - before.refused_large};
}

TEST(Intent, TheLogTakesNoFsyncThatIsLargerThanTheMountOption) {
  for (const uint64_t max : {0U, 1U, 7U, 126U}) {
    Rig::Options options = Rig::with_intent_log();
    options.meta_bytes = 8 << 20;
    options.intent_log_bytes = 4 << 20;
    options.mount.intent_log_max = max * kBlockSize;
    Rig rig(options);
    begin(rig);
    EXPECT_EQ(rig.fs().status()->intent.fsync_bytes_max, max * kBlockSize);
    const std::array<uint64_t, 2> counts = fsyncs_of(rig, {max, max + 1});
    EXPECT_EQ(counts, (std::array<uint64_t, 2>{max == 0 ? 0U : 1U, 1})) << max;
    EXPECT_TRUE(rig.check().problems.empty());
  }
}

TEST(Intent, ASmallLogTakesFsyncsOfAtMostAQuarterOfIt) {
  Rig::Options options = Rig::with_intent_log();
  options.intent_log_bytes = meta::kRingSize;
  options.mount.intent_log_max = meta::IntentLog::kBatchBytesMax;
  Rig rig(options);
  begin(rig);
  EXPECT_EQ(rig.fs().status()->intent.fsync_bytes_max, meta::kRingSize / 4);
  const std::array<uint64_t, 2> counts = fsyncs_of(rig, {32, 33});
  EXPECT_EQ(counts, (std::array<uint64_t, 2>{1, 1}));
}

// A write that no fsync could log gains nothing in the cache once the file is known to be fsync'd.
TEST(Intent, OnceAFileWasSyncedWritesTooLargeForTheLogGoStraightToTheDevice) {
  Rig rig(Rig::with_intent_log());
  begin(rig);
  const InodeId id = rig.create("f");
  const uint64_t large = rig.fs().status()->intent.fsync_bytes_max / kBlockSize + 1;
  const uint64_t before = costs(rig).writes;
  ASSERT_TRUE(rig.write(id, 0, blocks(large, 1)).ok());
  EXPECT_EQ(costs(rig).writes, before);
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  const uint64_t synced = costs(rig).writes;
  ASSERT_TRUE(rig.write(id, large * kBlockSize, blocks(large - 1, 2)).ok());
  EXPECT_EQ(costs(rig).writes, synced);
  ASSERT_TRUE(rig.write(id, 2 * large * kBlockSize, blocks(large, 3)).ok());
  EXPECT_GT(costs(rig).writes, synced);
  const uint64_t on_device = rig.fs().status()->intent.refused_on_device;
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  EXPECT_EQ(rig.fs().status()->intent.refused_on_device, on_device + 1);
  EXPECT_TRUE(rig.check().problems.empty());
}

TEST(Intent, WhatIsOverwrittenBeforeItsRoundIsNeverWritten) {
  Rig rig(Rig::with_intent_log());
  begin(rig);
  const InodeId id = rig.create("f");
  const uint64_t before = rig.device().writes();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(rig.write(id, 0, blocks(1, i)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  }
  EXPECT_EQ(rig.device().writes(), before);
  const uint64_t log = rig.fs().status()->log_bytes;
  ASSERT_TRUE(rig.fs().sync().ok());
  const uint64_t chunks = (rig.fs().status()->log_bytes - log) / kBlockSize;
  EXPECT_LE(rig.device().writes() - before, 1 + chunks);
  EXPECT_EQ(rig.read(id, 0, kBlockSize), blocks(1, 19));
}

TEST(Intent, WhatWasAbsorbedSurvivesKillsAndCuts) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rig rig(forgetful());
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, blocks(3, 1)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    ASSERT_TRUE(rig.write(id, kBlockSize, blocks(1, 2)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    seed % 2 == 0 ? rig.kill() : rig.power_cut(seed);
    std::vector<std::byte> want = blocks(3, 1);
    std::fill_n(want.begin() + kBlockSize, kBlockSize, std::byte{2});
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, want.size()), want) << seed;
    rig.power_cut(seed);  // nothing has gone home
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, want.size()), want) << seed;
    ASSERT_TRUE(rig.write(rig.create("g"), 0, blocks(1, 3)).ok());  // the log begins anew
    rig.power_cut(seed);
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, want.size()), want) << seed;
    EXPECT_TRUE(rig.check().problems.empty());
  }
}

// The cut comes in an fsync. It keeps all that was stored and not fenced but for some regions of
// META: the record must not count without its entries and checksums.
TEST(Intent, NoRecordCountsWithoutItsEntriesAndChecksums) {
  for (const uint64_t length : {uint64_t{1}, uint64_t{70}}) {  // absorbed, and with a flush
    for (uint64_t event = 1; event <= 30; ++event) {
      Rig::Options options = forgetful();
      options.cuts_within = true;
      options.checksums = event % 2 == 0 || length > 1;
      Rig rig(options);
      const InodeId other = rig.create("other"), id = rig.create("f"), last = rig.create("last");
      ASSERT_TRUE(rig.write(id, 0, blocks(length, 1)).ok());
      ASSERT_TRUE(rig.fs().fsync(id, false).ok());
      // New blocks of the file are then those of the other one.
      ASSERT_TRUE(rig.write(other, 0, blocks(4 * length, 9)).ok());
      const uint64_t rest = rig.fs().engine().blocks().free_blocks() - 8;
      ASSERT_TRUE(rig.write(rig.create("rest"), 0, blocks(rest, 8)).ok());
      ASSERT_TRUE(rig.fs().sync().ok());
      ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "other").ok());
      rig.fs().forget(other, 1);
      ASSERT_TRUE(rig.fs().maintenance().reclaim(TrimQueue::Pace::kNow).ok());
      const meta::Geometry geometry = rig.fs().engine().geometry();
      rig.lose([geometry](uint64_t offset) {
        const auto ring = geometry.region_byte(meta::RegionKind::kRings, offset);
        return geometry.region_byte(meta::RegionKind::kChecksums, offset) ||
               (ring && *ring >= geometry.super().ring_count * meta::kRingSize);
      });
      ASSERT_TRUE(rig.write(last, 0, blocks(1, 3)).ok());
      ASSERT_TRUE(rig.fs().fsync(last, false).ok());  // overwrites take new blocks
      ASSERT_TRUE(rig.write(id, 0, blocks(length, 2)).ok());
      rig.power_off_after(event / 2 + 1);
      const bool synced = rig.fs().fsync(id, false).ok() && !rig.power_is_off();
      rig.power_cut(1);
      const auto content = rig.read(rig.lookup("f"), 0, length * kBlockSize);
      EXPECT_TRUE(content == blocks(length, 2) || (!synced && content == blocks(length, 1)))
          << length << ", " << event;
    }
  }
}

// Blocks that a crash left in the log go home with the first write of the next mount.
TEST(Intent, TheFirstWriteAfterACrashMayBeCutAnywhere) {
  for (uint64_t event = 1; event < 40; ++event) {
    Rig::Options options = forgetful();
    options.cuts_within = true;
    Rig rig(options);
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, blocks(20, 1)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    rig.kill();
    rig.power_off_after(event);
    (void)rig.write(rig.create("g"), 0, blocks(1, 2));
    rig.power_cut(event);
    ASSERT_EQ(rig.read(rig.lookup("f"), 0, 20 * kBlockSize), blocks(20, 1)) << event;
  }
}

// The last mount promised it for the loss of META after 5 s, whatever this mount does.
TEST(Intent, WhatACrashLeftInMetaIsOnDataFiveSecondsLaterWithoutAWrite) {
  Rig rig(forgetful());
  begin(rig);
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, blocks(2, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  rig.power_cut(1);
  for (uint64_t ms = 0; ms < IntentBarrier::kAgeMaxMs; ms += 500) {
    rig.clock().ms += 500;
    rig.fs().maintenance().timer_round();
  }
  rig.power_cut_losing_meta(2);
  EXPECT_EQ(rig.read(rig.lookup("f"), 0, 2 * kBlockSize), blocks(2, 1));
  EXPECT_TRUE(rig.check().problems.empty());
}

// Syncs names until the next sync takes a snapshot of META. Returns how many there were; `most`:
// the number to stop at.
int sync_until_snapshot(Rig& rig, int most) {
  uint64_t before = rig.fs().status()->log_bytes;
  for (int i = 0; i < most; ++i) {
    rig.create("name" + std::to_string(i));
    EXPECT_TRUE(rig.fs().sync().ok());
    const uint64_t now = rig.fs().status()->log_bytes;
    if (now - before > 16 * kBlockSize) return i;
    before = now;
  }
  return most;
}

// An fsync comes while the snapshot is written, which then has to bring its data home.
TEST(Intent, ASnapshotOfMetaBringsHomeWhatItMayShow) {
  Rig::Options options = forgetful();
  options.cuts_within = true;
  int snapshot_at = 0;
  {
    Rig rig(options);
    begin(rig);
    rig.create("f");
    snapshot_at = sync_until_snapshot(rig, 1000);
    ASSERT_LT(snapshot_at, 1000);
  }
  for (uint64_t event = 1; event < 60; event += 2) {
    Rig rig(options);
    begin(rig);
    const InodeId id = rig.create("f");
    ASSERT_EQ(sync_until_snapshot(rig, snapshot_at), snapshot_at);
    rig.create("last");
    bool synced = false;
    const auto fsync = [&] {
      rig.power_off_after(event);
      EXPECT_TRUE(rig.write(id, 0, blocks(20, 1)).ok());
      synced = rig.fs().fsync(id, false).ok() && !rig.power_is_off();
    };
    // The first round has nothing to ship: its flush is the event before the snapshot.
    rig.at_next_event([&] { rig.at_next_event(fsync); });
    (void)rig.fs().sync();
    rig.power_cut(event);
    const auto content = rig.read(rig.lookup("f"), 0, 20 * kBlockSize);
    ASSERT_TRUE(!synced || content == blocks(20, 1)) << event;
  }
}

TEST(Intent, AFailedWriteThatPushedCachedDataOutCostsTheNextFsyncAFlush) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    Rig rig(Rig::with_intent_log());
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, blocks(1, 1)).ok());
    ASSERT_TRUE(rig.fs().sync().ok());
    ASSERT_TRUE(rig.write(id, kBlockSize, blocks(1, 2)).ok());  // cached
    blockdev::Faults faults;
    faults.fail_writes_after = 1;
    faults.failures = 1;
    rig.device().set_faults(faults);
    EXPECT_FALSE(rig.write(id, 0, blocks(2, 2)).ok());
    rig.device().set_faults({});
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    rig.power_cut(seed);
    EXPECT_EQ(rig.read(rig.lookup("f"), kBlockSize, kBlockSize), blocks(1, 2)) << seed;
  }
}

TEST(Intent, NothingIsTrimmedBeforeTheLogsBegin) {
  Rig rig(Rig::with_intent_log());
  const InodeId id = rig.create("a");
  ASSERT_TRUE(rig.write(id, 0, blocks(4, 5)).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "a").ok());
  rig.fs().forget(id, 1);
  ASSERT_TRUE(rig.fs().maintenance().free_orphans().ok());  // freed in META alone
  rig.kill();
  ASSERT_TRUE(rig.fs().maintenance().reclaim(TrimQueue::Pace::kGivesWay).ok());
  rig.power_cut_losing_meta(1);
  const auto found = rig.fs().lookup(rig.fs().root(), "a");
  if (!found.ok()) return;
  EXPECT_EQ(rig.read(found->id, 0, 4 * kBlockSize), blocks(4, 5));
}

TEST(Intent, ADeviceThatFailsWritesForAWhileLosesNothing) {
  Rig rig(Rig::with_intent_log());
  const InodeId id = rig.create("f"), other = rig.create("other");
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.write(id, 0, blocks(1, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  ASSERT_TRUE(rig.write(other, 0, blocks(1, 2)).ok());
  blockdev::Faults faults;
  faults.fail_writes_after = 0;
  rig.device().set_faults(faults);
  for (int i = 0; i < 8; ++i) {
    rig.clock().ms += 1000;
    rig.fs().maintenance().timer_round();
  }
  EXPECT_FALSE(rig.fs().sync().ok());
  EXPECT_FALSE(rig.fs().status()->degraded_read_only);
  rig.device().set_faults({});
  ASSERT_TRUE(rig.fs().sync().ok());
  rig.power_cut_losing_meta(1);
  EXPECT_EQ(rig.read(rig.lookup("f"), 0, kBlockSize), blocks(1, 1));
  EXPECT_EQ(rig.read(rig.lookup("other"), 0, kBlockSize), blocks(1, 2));
}

// Each thread appends to a file of its own and counts its appends in the file's first block.
TEST(Intent, ThreadsSideBySideLoseNothingTheyWerePromised) {
  constexpr uint64_t kThreads = 3, kAppends = 150;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Rig rig(forgetful());
    std::array<InodeId, kThreads> files;
    for (uint64_t i = 0; i < kThreads; ++i) files[i] = rig.create("f" + std::to_string(i));
    std::atomic<bool> done{false};
    std::thread rounds([&] {
      while (!done) {
        rig.clock().ms += 1000;
        rig.fs().maintenance().timer_round();
        rig.fs().maintenance().reclaim_round();
      }
    });
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&rig, id = files[i]] {
        for (uint64_t append = 1; append <= kAppends; ++append) {
          const int value = static_cast<int>(append);
          ASSERT_TRUE(rig.write(id, append * kBlockSize, blocks(1, value)).ok());
          ASSERT_TRUE(rig.write(id, 0, blocks(1, value)).ok());
          ASSERT_TRUE(rig.fs().fsync(id, append % 2 == 0).ok());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    done = true;
    rounds.join();
    EXPECT_GT(rig.fs().status()->intent.fsyncs, kThreads * kAppends / 2);
    rig.power_cut(seed);
    for (uint64_t i = 0; i < kThreads; ++i) {
      const InodeId id = rig.lookup("f" + std::to_string(i));
      EXPECT_EQ(rig.read(id, 0, kBlockSize), blocks(1, kAppends)) << seed;
      for (uint64_t append = 1; append <= kAppends; ++append)
        ASSERT_EQ(rig.read(id, append * kBlockSize, kBlockSize),
                  blocks(1, static_cast<int>(append)))
            << seed << ", " << i << ", " << append;
    }
    EXPECT_TRUE(rig.check().problems.empty());
  }
}

}  // namespace
}  // namespace streamfs::data::intent_test
