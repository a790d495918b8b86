// A mount goes on with the log where an orderly unmount left it; any other begins it anew before
// DATA changes, and nobody has to wait for that to read.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/pair/pair.h"
#include "pmem/region.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

std::vector<std::byte> content(int value) {
  return Rig::filled(3 * kBlockSize, value);
}

uint64_t log_bytes(Rig& rig) {
  return rig.fs().status()->log_bytes;
}

void create_durably(Rig& rig, const std::string& name, int value) {
  const InodeId id = rig.create(name);
  ASSERT_TRUE(rig.write(id, 0, content(value)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
}

TEST(LogEnd, FirstMountAndEveryOneAfterAnOrderlyUnmountWriteNothing) {
  Rig rig(Rig::with_log());
  EXPECT_EQ(log_bytes(rig), 0U) << "the snapshot is mkfs's";
  create_durably(rig, "f", 1);
  EXPECT_EQ(log_bytes(rig), kBlockSize) << "a chunk";
  for (int i = 0; i < 3; ++i) {
    rig.remount();
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, content(1).size()), content(1));
    EXPECT_EQ(log_bytes(rig), 0U);
  }
}

TEST(LogEnd, WhatAnyMountMadeDurableComesBack) {
  for (const auto meta_class : {pmem::MetaClass::kPersistent, pmem::MetaClass::kSynced}) {
    Rig rig(Rig::with_log(meta_class));
    constexpr int kMounts = 12;
    for (int i = 1; i <= kMounts; ++i) {
      create_durably(rig, "f" + std::to_string(i), i);
      if (i % 4 == 0) {
        rig.power_cut_losing_meta(static_cast<uint64_t>(i));
      } else if (i % 4 == 2) {
        rig.unmount_losing_meta();
      } else {
        rig.remount();
      }
      for (int j = 1; j <= i; ++j)
        ASSERT_EQ(rig.read(rig.lookup("f" + std::to_string(j)), 0, content(j).size()), content(j))
            << "mount " << i;
    }
  }
}

// A restore would look for the blocks' old content: their conditions are not settled.
TEST(LogEnd, AfterAKillTheLogBeginsBeforeDataChanges) {
  Rig rig(Rig::with_log());
  create_durably(rig, "f", 1);
  rig.kill();
  EXPECT_EQ(log_bytes(rig), 0U) << "mounting waits for no snapshot";
  ASSERT_TRUE(rig.write(rig.lookup("f"), 0, Rig::filled(kBlockSize, 2)).ok());
  EXPECT_GT(log_bytes(rig), 0U);
  rig.power_cut_losing_meta(1);
  const auto rest = Rig::filled(2 * kBlockSize, 1);
  EXPECT_EQ(rig.read(rig.lookup("f"), kBlockSize, rest.size()), rest);
}

// Its blocks are reused only when no restore brings the file back.
TEST(LogEnd, AfterAKillNoFileShowsAnothersBytes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rig rig(Rig::with_log());
    create_durably(rig, "gone", 1);
    ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "gone").ok());
    rig.kill();
    ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
    if (seed % 2 == 0) rig.power_cut_losing_meta(seed);  // the blocks are trimmed, if at all
    const InodeId id = rig.create("new");
    for (uint64_t block = 0; block < 2000; block += 3)
      ASSERT_TRUE(rig.write(id, block * kBlockSize, content(2)).ok());
    rig.power_cut_losing_meta(seed);
    const auto gone = rig.fs().lookup(rig.fs().root(), "gone");
    if (gone.ok()) {
      EXPECT_EQ(rig.read(gone->id, 0, content(1).size()), content(1));
    }
  }
}

// A heap unit is zeroed when it is taken, which no record tells: the snapshot has it as it was.
TEST(LogEnd, AUnitUsedAgainShowsNothingOfItsOwnerBefore) {
  Rig rig(Rig::with_log());
  const auto folder = [&](const std::string& name) {
    return rig.fs().create(rig.fs().root(), name, 0040755, 0, {}, {}).value().id;
  };
  const auto name_of = [](int i) { return std::string(200, 'n') + std::to_string(i); };
  const auto fill = [&](InodeId in, int files) {
    for (int i = 0; i < files; ++i)
      ASSERT_TRUE(rig.fs().create(in, name_of(i), 0100644, 0, {}, {}).ok());
  };
  const InodeId old = folder("old");
  fill(old, 600);
  ASSERT_TRUE(rig.fs().sync().ok());
  rig.kill();
  ASSERT_TRUE(rig.write(rig.create("f"), 0, content(1)).ok());  // a snapshot with all of that
  const InodeId again = rig.lookup("old");
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(rig.fs().unlink(again, name_of(i)).ok());
  ASSERT_TRUE(rig.fs().rmdir(rig.fs().root(), "old").ok());
  rig.remount();  // which frees it first
  // Until there are no others: units that nobody has had are taken first.
  int made = 0;
  while (rig.fs().create(rig.fs().root(), "new" + std::to_string(made), 0040755, 0, {}, {}).ok()) {
    const InodeId in = rig.lookup("new" + std::to_string(made++));
    if (!rig.fs().create(in, "only", 0100644, 0, {}, {}).ok()) break;
  }
  ASSERT_GT(made, 100);
  ASSERT_TRUE(rig.fs().sync().ok());
  rig.power_cut_losing_meta(1);
  const meta::CheckReport report = rig.check();
  EXPECT_TRUE(report.sound()) << report.problems.size() << ": " << report.problems.front().text;
}

TEST(LogEnd, KillAfterAnIdleMountChangesNothing) {
  Rig rig(Rig::with_log());
  create_durably(rig, "f", 1);
  rig.remount();
  rig.kill();
  rig.power_cut_losing_meta(1);
  EXPECT_EQ(rig.read(rig.lookup("f"), 0, content(1).size()), content(1));
}

TEST(LogEnd, FitsAWord) {
  const meta::LogEnd end{7, 12, 345};
  const auto again = meta::LogEnd::unpacked(end.packed());
  EXPECT_EQ(again.chunks, 12U);
  EXPECT_EQ(again.blocks, 345U);
  EXPECT_TRUE(again.is_after(7));
  EXPECT_TRUE(again.is_after(7 + (uint64_t{1} << 16))) << "as far as a word can tell";
  EXPECT_FALSE(again.is_after(8));
  EXPECT_EQ((meta::LogEnd{7, 0, uint64_t{1} << 24}).packed(), 0U) << "too long to say";
}

// An SSD has dead log trimmed, for its garbage collection; in a file that would be a hole, and the
// next turn's flushes would wait for its blocks.
TEST(LogEnd, WhatNoSnapshotNeedsIsTrimmedUnlessItLiesInAFile) {
  for (const char* const kind : {"emulated", "file"}) {
    Rig::Options options = Rig::with_log();
    options.kind = kind;
    options.volatile_cache = false;  // trims arrive at once
    Rig rig(options);
    const meta::DataLabel label = pair::read_label(rig.ram()).value();
    uint64_t of_log = 0;
    rig.ram().on_trim_of = [&](BlockNo first, uint64_t count) {
      const uint64_t at = first.value - label.log_first_block;
      if (at < label.log_blocks) of_log += count;
    };
    const InodeId id = rig.create("f");
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(rig.write(id, 0, content(i)).ok());
      ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    }
    if (std::string(kind) == "file") {
      EXPECT_EQ(of_log, 0U);
    } else {
      EXPECT_GT(of_log, 300U);
    }
  }
}

}  // namespace
}  // namespace streamfs::data
