// A growth of both devices while the filesystem is used, cut where DATA is written, and after META
// was lost.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/growth.h"
#include "fuse-fs/meta/label.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kSmall = 8192, kLarge = 32768;
constexpr size_t kBytes = 300'000;

Rig::Options growing(bool log) {
  Rig::Options options;
  options.blocks = kSmall;
  options.most_blocks = kLarge;
  options.meta_bytes = 2 << 20;
  options.meta_log = log;
  options.meta_class = log ? pmem::MetaClass::kVolatile : pmem::MetaClass::kPersistent;
  return options;
}

InodeId add_file(Rig& rig, const std::string& name, int value) {
  const InodeId id = rig.create(name);
  EXPECT_TRUE(rig.write(id, 0, Rig::filled(kBytes, value)).ok());
  EXPECT_TRUE(rig.fs().fsync(id, false).ok());
  return id;
}

void expect_file(Rig& rig, const std::string& name, int value) {
  EXPECT_EQ(rig.read(rig.lookup(name), 0, kBytes), Rig::filled(kBytes, value)) << name;
}

Grown grow(Rig& rig, const GrowOptions& options = {}) {
  const Result<Grown> grown = rig.fs().grow(options);
  EXPECT_TRUE(grown.ok()) << grown.error().message();
  return grown.ok() ? *grown : Grown{};
}

TEST(Grow, BothDevicesGrowAndTheNewRoomIsUsed) {
  Rig rig(growing(false));
  add_file(rig, "before", 1);
  const meta::Space space = rig.fs().space();
  EXPECT_EQ(grow(rig).before, grow(rig).after) << "nothing to do is no error";
  rig.ram().lengthen(kLarge);
  GrowOptions look;
  look.dry_run = true;
  const Grown promised = grow(rig, look);
  EXPECT_EQ(rig.fs().space().data_blocks, space.data_blocks) << "a dry run changes nothing";
  const Grown grown = grow(rig);
  EXPECT_EQ(grown.after, promised.after);
  EXPECT_EQ(grown.after.data_bytes, kLarge * kBlockSize);
  EXPECT_GT(grown.after.meta_bytes, grown.before.meta_bytes);
  EXPECT_EQ(rig.fs().space().data_blocks, space.data_blocks + kLarge - kSmall);
  EXPECT_GT(rig.fs().status()->space.inodes_possible, space.inodes_possible);
  const InodeId large = rig.create("large");
  for (uint64_t at = 0; at < 20'000 * kBlockSize; at += 1 << 20) {
    ASSERT_TRUE(rig.write(large, at, Rig::filled(1 << 20, 9)).ok()) << at;
  }
  ASSERT_TRUE(rig.fs().sync().ok());
  rig.remount();
  EXPECT_EQ(rig.fs().geometry().data_blocks(), kLarge);
  expect_file(rig, "before", 1);
  EXPECT_EQ(rig.read(rig.lookup("large"), 19'000 * kBlockSize, 4096), Rig::filled(4096, 9));
}

// META passes 8 MiB, of which the log gets a segment more. It is used at once, and after a kill.
TEST(Grow, TheIntentLogGrowsWithMetaAndIsUsed) {
  Rig::Options options = Rig::with_intent_log();
  options.blocks = 32768;  // of which META's log gets some
  options.intent_log_bytes = meta::kRingSize;
  options.mount.intent_log_max = meta::IntentLog::kBatchBytesMax;
  Rig rig(options);
  EXPECT_EQ(rig.fs().status()->intent.fsync_bytes_max, meta::kRingSize / 4);
  GrowOptions wanted;
  wanted.meta_bytes = 16 << 20;
  grow(rig, wanted);
  const IntentStatus grown = rig.fs().status()->intent;
  EXPECT_EQ(grown.bytes, 3 * meta::kRingSize);
  EXPECT_EQ(grown.fsync_bytes_max, 3 * meta::kRingSize / 4);
  for (int i = 0; i < 3; ++i) {  // a segment holds one of them
    const InodeId id = rig.create("f" + std::to_string(i));
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(kBytes, i + 1)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  }
  EXPECT_EQ(rig.fs().status()->intent.fsyncs, 3U);
  EXPECT_GT(rig.fs().status()->intent.used_bytes, meta::kRingSize);
  rig.kill();
  EXPECT_GT(rig.fs().status()->intent.recovered_blocks, 0U);
  for (int i = 0; i < 3; ++i) expect_file(rig, "f" + std::to_string(i), i + 1);
  rig.remount();
  for (int i = 0; i < 3; ++i) expect_file(rig, "f" + std::to_string(i), i + 1);
  EXPECT_EQ(rig.fs().status()->intent.bytes, 3 * meta::kRingSize);
  EXPECT_TRUE(rig.check().problems.empty());
}

TEST(Grow, OneAtATimeAndNotReadOnly) {
  Rig rig(growing(false));
  int code = 0;
  rig.ram().on_measure = [&] {
    std::thread([&] { code = rig.fs().grow({}).error().code; }).join();
  };
  EXPECT_TRUE(rig.fs().grow({}).ok());
  EXPECT_EQ(code, EBUSY);
  Rig::Options options = growing(false);
  options.mount.read_only = true;
  Rig looking(options);
  looking.ram().lengthen(kLarge);
  EXPECT_EQ(looking.fs().grow({}).error().code, EROFS);
}

TEST(Grow, ADeviceThatShrankIsRefused) {
  Rig rig(growing(false));
  rig.ram().lengthen(kSmall - 1);
  EXPECT_EQ(rig.fs().grow({}).error().code, EOPNOTSUPP);
}

// The power goes in the first or the second of its two flushes, or before either.
TEST(Label, OneCopyIsWholeAtEveryCut) {
  meta::FormatOptions options;
  options.data_blocks = kSmall;
  options.meta_log = true;
  meta::Superblock super =
      meta::plan_format(meta::first_meta_size(options), pmem::MetaClass::kSynced, options).value();
  const meta::DataLabel old = meta::make_label(super).label;
  meta::GrowthRequest request;
  request.data_blocks = kLarge;
  request.meta_bytes = 2 * super.meta_size;
  request.snapshot_blocks = meta::snapshot_capacity(old);
  super = meta::plan_growth(super, request).value();
  ++super.generation;
  const meta::DataLabel larger = meta::grown_label(old, super);
  int seen_old = 0, seen_larger = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    blockdev::FaultyDevice device(std::make_unique<RamDevice>(kSmall), true);
    ASSERT_TRUE(pair::write_label(device, old).ok());
    blockdev::Faults faults;
    faults.fail_flushes_after = seed % 3;
    device.set_faults(faults);
    EXPECT_EQ(pair::replace_label(device, larger).ok(), seed % 3 == 2);
    device.power_cut(seed);
    device.power_on();
    device.set_faults({});
    const Result<meta::DataLabel> found = pair::read_label(device);
    ASSERT_TRUE(found.ok()) << seed << ": " << found.error().message();
    const bool is_larger = meta::same_size(found->geometry, super);
    EXPECT_TRUE(is_larger || (meta::same_size(found->geometry, old.geometry) && seed % 3 == 0));
    (is_larger ? seen_larger : seen_old) += 1;
  }
  EXPECT_GT(seen_old, 0);
  EXPECT_GT(seen_larger, 20) << "a second copy that is whole counts";
}

// Writes or flushes fail from a later one on with each step, then the power goes. True: it grew.
bool grow_and_cut(Rig& rig, const GrowOptions& wanted, uint64_t step, bool lose_meta) {
  blockdev::Faults faults;
  (step % 2 == 0 ? faults.fail_writes_after : faults.fail_flushes_after) = step / 4;
  faults.tear_failing_writes = step % 4 == 0;
  rig.device().set_faults(faults);
  const bool grown = rig.fs().grow(wanted).ok();
  rig.device().set_faults({});
  if (lose_meta) {
    rig.power_cut_losing_meta(step);
  } else {
    rig.power_cut(step);
  }
  return grown;
}

// Each write and each flush of DATA fails in turn, torn or not, and the power goes.
class GrowCut : public testing::TestWithParam<bool> {};

TEST_P(GrowCut, LeavesAllFilesInTheOldOrTheNewSize) {
  const bool lose_meta = GetParam();
  int grown = 0, as_before = 0;
  bool done = false;
  for (uint64_t step = 0; !done; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    Rig rig(growing(true));
    add_file(rig, "before", 1);
    rig.ram().lengthen(kLarge);
    done = grow_and_cut(rig, {}, step, lose_meta);
    const uint64_t blocks = rig.fs().geometry().data_blocks();
    EXPECT_TRUE(blocks == kLarge || (blocks == kSmall && !done)) << blocks;
    grown += blocks == kLarge ? 1 : 0;
    as_before += blocks == kSmall ? 1 : 0;
    expect_file(rig, "before", 1);
    add_file(rig, "between", 3);
    rig.unmount_losing_meta();
    EXPECT_EQ(rig.fs().geometry().data_blocks(), blocks) << "DATA knows as well";
    expect_file(rig, "between", 3);
    grow(rig);
    EXPECT_EQ(rig.fs().geometry().data_blocks(), kLarge);
    add_file(rig, "after", 2);
    rig.unmount_losing_meta();
    expect_file(rig, "before", 1);
    expect_file(rig, "after", 2);
    ASSERT_LT(step, 100U);
  }
  EXPECT_GT(grown, 0);
  EXPECT_EQ(as_before > 0, lose_meta) << "META says the new size before DATA does";
}

// The log takes blocks of which records and the log itself still speak: they were a file's.
TEST_P(GrowCut, OfMetaAloneLeavesAllFilesInTheOldOrTheNewSize) {
  const bool lose_meta = GetParam();
  GrowOptions wanted;
  wanted.meta_bytes = 6 << 20;
  int grown = 0, as_before = 0;
  bool done = false;
  for (uint64_t step = 0; !done; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    Rig rig(growing(true));
    add_file(rig, "before", 1);
    const InodeId gone = rig.create("gone");
    const uint64_t most = rig.fs().space().free_blocks - 64;
    ASSERT_TRUE(rig.write(gone, 0, Rig::filled(most * kBlockSize, 9)).ok());
    ASSERT_TRUE(rig.fs().fsync(gone, false).ok());
    ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "gone").ok());
    rig.fs().forget(gone, 1);
    ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
    const uint64_t small = rig.fs().geometry().meta_size();
    done = grow_and_cut(rig, wanted, step, lose_meta);
    const uint64_t size = rig.fs().geometry().meta_size();
    EXPECT_TRUE(size == *wanted.meta_bytes || (size == small && !done)) << size;
    ++(size == small ? as_before : grown);
    expect_file(rig, "before", 1);
    const uint64_t free = rig.fs().space().free_blocks;
    const InodeId large = rig.create("large");
    EXPECT_TRUE(rig.write(large, 0, Rig::filled((free - 64) * kBlockSize, 5)).ok());
    EXPECT_TRUE(rig.fs().fsync(large, false).ok());
    rig.unmount_losing_meta();
    EXPECT_EQ(rig.fs().geometry().meta_size(), size);
    expect_file(rig, "before", 1);
    EXPECT_EQ(rig.read(rig.lookup("large"), 0, kBytes), Rig::filled(kBytes, 5));
    ASSERT_LT(step, 200U);
  }
  EXPECT_GT(grown, 0);
  EXPECT_GT(as_before, 0);
}

INSTANTIATE_TEST_SUITE_P(All, GrowCut, testing::Bool(), [](const auto& param_info) {
  return param_info.param ? "MetaLost" : "MetaKept";
});

TEST(Grow, ALostMetaThatOutgrewItsFirstSnapshotsComesBack) {
  Rig rig(growing(true));
  rig.ram().lengthen(kLarge);
  const uint64_t before = meta::snapshot_capacity(pair::read_label(rig.device()).value());
  grow(rig);
  const meta::DataLabel label = pair::read_label(rig.device()).value();
  EXPECT_GE(meta::snapshot_capacity(label), meta::snapshot_blocks_for(label.geometry));
  uint64_t files = 0;
  while (rig.fs().space().heap_units - rig.fs().space().free_units < before + 50) {
    rig.create("f" + std::to_string(files++));
  }
  add_file(rig, "shipped", 3);
  rig.unmount_losing_meta();
  expect_file(rig, "shipped", 3);
  EXPECT_EQ(rig.fs().geometry().data_blocks(), kLarge);
  rig.lookup("f" + std::to_string(files - 1));
  add_file(rig, "later", 4);
  rig.power_cut_losing_meta(5);
  expect_file(rig, "later", 4);
}

TEST(Grow, WhatTheLogTookIsNobodyElses) {
  Rig rig(growing(true));
  add_file(rig, "f", 1);
  rig.ram().lengthen(kLarge);
  grow(rig);
  const meta::Geometry& geometry = rig.fs().geometry();
  EXPECT_GT(geometry.reserved_blocks(), geometry.super().first_data_block);
  meta::BlockAllocator& blocks = rig.fs().engine().blocks();
  const uint64_t free = blocks.free_blocks();
  uint64_t given = 0;
  for (auto run = blocks.reserve(500, kDefaultPStream, {}); run.ok();
       run = blocks.reserve(500, kDefaultPStream, {})) {
    ASSERT_TRUE(geometry.valid_blocks(run->first.value, run->count)) << run->first.value;
    given += run->count;
  }
  EXPECT_EQ(given, free);
  rig.power_cut(1);
  EXPECT_EQ(rig.fs().space().free_blocks, free) << "a mount counts them as a growth does";
}

// All that is free was a file's a moment ago: the journal and the log name those blocks.
TEST(Grow, MetaAloneGrowsAndItsLogTakesFreeBlocks) {
  for (const bool lose_meta : {false, true}) {
    Rig rig(growing(true));
    add_file(rig, "kept", 1);
    const InodeId large = rig.create("large");
    const uint64_t room = rig.fs().space().free_blocks - 600;
    ASSERT_TRUE(rig.write(large, 0, Rig::filled(room * kBlockSize, 9)).ok());
    ASSERT_TRUE(rig.fs().fsync(large, false).ok());
    GrowOptions wanted;
    wanted.meta_bytes = 6 << 20;
    EXPECT_EQ(rig.fs().grow(wanted).error().code, ENOSPC) << "there is no room for its log";
    ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "large").ok());
    rig.fs().forget(large, 1);
    ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
    const uint64_t free = rig.fs().space().free_blocks;
    wanted.dry_run = true;
    grow(rig, wanted);
    EXPECT_EQ(rig.fs().space().free_blocks, free);
    wanted.dry_run = false;
    EXPECT_EQ(grow(rig, wanted).after.meta_bytes, wanted.meta_bytes);
    EXPECT_LT(rig.fs().space().free_blocks, free);
    if (lose_meta) {
      rig.power_cut_losing_meta(3);
    } else {
      rig.power_cut(3);
    }
    EXPECT_EQ(rig.fs().geometry().meta_size(), wanted.meta_bytes);
    expect_file(rig, "kept", 1);
    while (rig.fs().engine().blocks().reserve(500, kDefaultPStream, {}).ok()) {
    }
    rig.unmount_losing_meta();
    expect_file(rig, "kept", 1);
  }
}

TEST(Grow, WritersGoOn) {
  Rig::Options options = growing(true);
  options.faulty = false;
  Rig rig(options);
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      const std::string name = "w" + std::to_string(writer);
      for (; !stop; ++rounds) {
        const InodeId id = rig.create(name);
        EXPECT_TRUE(rig.write(id, 0, Rig::filled(200'000, writer + 1)).ok());
        EXPECT_TRUE(rig.fs().fsync(id, false).ok());
        EXPECT_EQ(rig.read(id, 100'000, 10), Rig::filled(10, writer + 1));
        EXPECT_TRUE(rig.fs().unlink(rig.fs().root(), name).ok());
        rig.fs().forget(id, 1);
        (void)rig.fs().maintenance().reclaim();
      }
    });
  }
  uint64_t blocks = kSmall;
  for (int growth = 1; growth <= 4; ++growth) {
    while (rounds < 4 * growth) std::this_thread::yield();
    rig.ram().lengthen(blocks += 6000);
    grow(rig);
  }
  while (rounds < 30) std::this_thread::yield();
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(rig.fs().geometry().data_blocks(), blocks);
  add_file(rig, "last", 5);
  rig.unmount_losing_meta();
  expect_file(rig, "last", 5);
}

}  // namespace
}  // namespace streamfs::data
