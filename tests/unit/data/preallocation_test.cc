// fallocate(): a preallocated range can be written, whatever else fills the disk, and shows no
// bytes of other files.
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "tests/unit/data/rig.h"
#include "tests/unit/data/small_disk.h"

namespace streamfs::data {
namespace {

TEST(Preallocation, IsCountedAtOnceAndGivenBackByAPunch) {
  Rig rig;
  const InodeId id = rig.create("f");
  const uint64_t before = free_blocks(rig);
  ASSERT_TRUE(rig.fs().allocate(id, 0, 0, 1000 * kBlockSize).ok());
  EXPECT_EQ(free_blocks(rig), before - 1000);
  EXPECT_EQ(rig.fs().attributes(id)->size, 1000 * kBlockSize);
  EXPECT_EQ(rig.fs().attributes(id)->blocks, 1000U);
  EXPECT_TRUE(all_are(rig.read(id, 0, 1000 * kBlockSize), 0));
  ASSERT_TRUE(rig.fs().allocate(id, FALLOC_FL_KEEP_SIZE, 1000 * kBlockSize, 5).ok());
  EXPECT_EQ(free_blocks(rig), before - 1001);
  EXPECT_EQ(rig.fs().attributes(id)->size, 1000 * kBlockSize);
  rig.remount();
  EXPECT_EQ(free_blocks(rig), before - 1001);
  const InodeId again = rig.lookup("f");
  ASSERT_TRUE(
      rig.fs().allocate(again, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 30).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  EXPECT_EQ(free_blocks(rig), before);
  EXPECT_TRUE(rig.check().sound());
}

TEST(Preallocation, OfMoreThanThereIsTakesNothing) {
  Rig rig;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, blocks(3, 'a')).ok());
  const uint64_t before = free_blocks(rig);
  EXPECT_EQ(error_of(rig.fs().allocate(id, 0, 0, (before + 4) * kBlockSize)), ENOSPC);
  EXPECT_EQ(free_blocks(rig), before);
  EXPECT_EQ(rig.fs().attributes(id)->size, 3 * kBlockSize);
  EXPECT_EQ(error_of(rig.fs().allocate(id, 0, 0, (before + 3) * kBlockSize)), 0);
  EXPECT_EQ(free_blocks(rig), 0U);
  EXPECT_EQ(rig.read(id, 0, 3 * kBlockSize), blocks(3, 'a'));
}

// Another file had the blocks before.
TEST(Preallocation, ShowsZeroesWhereAnotherFileWas) {
  for (const bool log : {false, true}) {
    Rig rig(small(log));
    const InodeId old = rig.create("old");
    for (uint64_t at = 0; free_blocks(rig) > 64; at += 64)
      ASSERT_TRUE(rig.write(old, at * kBlockSize, blocks(64, 'o')).ok());
    ASSERT_TRUE(rig.fs().sync().ok());
    ASSERT_TRUE(rig.fs().truncate(old, 0).ok());
    ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
    const InodeId id = rig.create("new");
    const uint64_t bytes = 1500 * kBlockSize;
    ASSERT_TRUE(rig.fs().allocate(id, 0, 0, bytes).ok());
    EXPECT_TRUE(all_are(rig.read(id, 0, bytes), 0));
    ASSERT_TRUE(rig.write(id, 5000, Rig::filled(10, 'n')).ok());
    for (int i = 0; i < 2; ++i) {
      const Content content = rig.read(rig.lookup("new"), 0, bytes);
      EXPECT_EQ(std::ranges::count(content, std::byte{'n'}), 10);
      EXPECT_EQ(std::ranges::count(content, std::byte{0}), static_cast<int64_t>(bytes) - 10);
      EXPECT_FALSE(rig.fs().seek(rig.lookup("new"), 9000, SEEK_DATA).ok());
      EXPECT_EQ(*rig.fs().seek(rig.lookup("new"), 0, SEEK_DATA), kBlockSize);
      EXPECT_EQ(*rig.fs().seek(rig.lookup("new"), 4096, SEEK_HOLE), 2 * kBlockSize);
      rig.remount();
    }
    EXPECT_EQ(rig.fs().status()->checksum_errors, 0U);
    EXPECT_TRUE(rig.check().sound());
  }
}

TEST(Preallocation, ZeroRangeKeepsTheBlocks) {
  Rig rig;
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, Rig::filled(100'000, 'a')).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  const auto before = rig.fs().engine().map(id, FileBlock{4}, 10)->front().block;
  ASSERT_TRUE(rig.fs().allocate(id, FALLOC_FL_ZERO_RANGE, 10'001, 50'000).ok());
  EXPECT_EQ(rig.fs().engine().map(id, FileBlock{4}, 10)->front().block, before);
  EXPECT_EQ(rig.fs().attributes(id)->blocks, div_round_up(100'000, kBlockSize));
  Content expected = Rig::filled(100'000, 'a');
  std::fill_n(expected.begin() + 10'001, 50'000, std::byte{0});
  EXPECT_EQ(rig.read(id, 0, 200'000), expected);
  const int past = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
  ASSERT_TRUE(rig.fs().allocate(id, past, 99'000, 100'000).ok());
  std::fill(expected.begin() + 99'000, expected.end(), std::byte{0});
  EXPECT_EQ(rig.read(id, 0, 200'000), expected);
  EXPECT_EQ(rig.fs().attributes(id)->blocks, div_round_up(199'000, kBlockSize));
  rig.remount();
  EXPECT_EQ(rig.read(rig.lookup("f"), 0, 200'000), expected);
  EXPECT_TRUE(rig.check().sound());
}

// ---- A full disk

// With a log, a restore looks at what an fsync named last: it is overwritten elsewhere if there is
// room, and else in its place.
TEST(FullDisk, TakesOverwritesOfWhatFilesHave) {
  for (const bool log : {false, true}) {
    Rig rig(small(log));
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, blocks(32, 'a')).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    fill(rig, "x");
    ASSERT_EQ(free_blocks(rig), 0U);
    for (int i = 0; i < 40; ++i) {
      const auto at = static_cast<uint64_t>(i) % 32 * kBlockSize;
      ASSERT_EQ(error_of(rig.write(id, at, Rig::filled(3000, 'b' + i % 20))), 0);
      ASSERT_EQ(error_of(rig.write(id, 0, blocks(32, 'b'))), 0);
      if (i % 3 == 0) {
        ASSERT_TRUE(rig.fs().fsync(id, i % 2 == 0).ok());
      }
    }
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    log ? rig.power_cut_losing_meta(1) : rig.power_cut(1);
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, 1 << 20), blocks(32, 'b'));
    EXPECT_TRUE(rig.check().sound());
  }
}

// A request of pages that have blocks, among others that have none.
TEST(FullDisk, TakesOfAWriteWhatHasBlocks) {
  Rig rig(small(false));
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, blocks(2, 'a')).ok());
  ASSERT_TRUE(rig.fs().allocate(id, 0, 4 * kBlockSize, 2 * kBlockSize).ok());
  ASSERT_TRUE(rig.write(id, 9 * kBlockSize, blocks(1, 'a')).ok());
  fill(rig, "x");
  EXPECT_EQ(error_of(rig.write(id, kBlockSize + 7, Rig::filled(8 * kBlockSize + 9, 'b'))), ENOSPC);
  Content expected = Rig::filled(10 * kBlockSize, 0);
  const auto put = [&](uint64_t from, uint64_t to, char what) {
    std::fill(expected.begin() + static_cast<int64_t>(from),
              expected.begin() + static_cast<int64_t>(to), std::byte(what));
  };
  put(0, kBlockSize + 7, 'a');
  put(kBlockSize + 7, 2 * kBlockSize, 'b');
  put(4 * kBlockSize, 6 * kBlockSize, 'b');
  put(9 * kBlockSize, 9 * kBlockSize + 16, 'b');
  put(9 * kBlockSize + 16, 10 * kBlockSize, 'a');
  EXPECT_EQ(rig.read(id, 0, 1 << 20), expected);
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  rig.power_cut(1);
  EXPECT_EQ(rig.read(rig.lookup("f"), 0, 1 << 20), expected);
}

TEST(FullDisk, MakesAFileLongerOnlyOverWhatWasSetAside) {
  Rig rig(small(false));
  const InodeId id = rig.create("f"), other = rig.create("g");
  for (const InodeId each : {id, other})
    ASSERT_TRUE(rig.write(each, 0, Rig::filled(100, 'a')).ok());
  ASSERT_TRUE(rig.fs().allocate(id, FALLOC_FL_KEEP_SIZE, kBlockSize, kBlockSize).ok());
  fill(rig, "x");
  for (const InodeId each : {id, other})
    EXPECT_EQ(error_of(rig.write(each, 50, Rig::filled(5 * kBlockSize, 'b'))), ENOSPC);
  EXPECT_EQ(rig.fs().attributes(other)->size, 100U);
  EXPECT_EQ(rig.fs().attributes(id)->size, 2 * kBlockSize);
  EXPECT_EQ(rig.read(id, 99, 1 << 20), [] {
    Content bytes = Rig::filled(2 * kBlockSize - 99, 'b');
    std::fill(bytes.begin() + 1, bytes.begin() + kBlockSize - 99, std::byte{0});
    return bytes;
  }());
}

// META has no unit left, and each write would split an extent.
TEST(FullMeta, TakesWritesIntoWhatWasSetAside) {
  for (const bool log : {false, true}) {
    Rig::Options options = small(log);
    options.meta_bytes = log ? 2 << 20 : 3 << 20;
    options.blocks = 16384;
    Rig rig(options);
    const InodeId id = rig.create("f");
    constexpr uint64_t kHeld = 6000;
    ASSERT_TRUE(rig.fs().allocate(id, 0, 0, kHeld * kBlockSize).ok());
    for (int i = 0; rig.fs().create(rig.fs().root(), "n" + std::to_string(i), 0100644, 0, {}, {});)
      ++i;
    const uint64_t units = rig.fs().space().free_units;
    std::mt19937_64 random(9);
    std::map<uint64_t, char> written;
    for (int i = 0; i < 300; ++i) {
      const uint64_t at = random() % kHeld;
      written[at] = static_cast<char>('a' + i % 26);
      ASSERT_EQ(error_of(rig.write(id, at * kBlockSize, blocks(1, written[at]))), 0) << i;
      if (i % 50 == 7) {
        ASSERT_EQ(error_of(rig.fs().fsync(id, false)), 0);
      }
    }
    ASSERT_EQ(error_of(rig.fs().fsync(id, false)), 0);
    EXPECT_EQ(rig.fs().space().free_units, units);
    rig.power_cut(1);
    const Content content = rig.read(rig.lookup("f"), 0, kHeld * kBlockSize);
    for (uint64_t at = 0; at < kHeld; ++at) {
      const auto known = written.find(at);
      ASSERT_EQ(content[at * kBlockSize],
                known == written.end() ? std::byte{0} : std::byte(known->second));
    }
    EXPECT_TRUE(rig.check().sound());
  }
}

// ---- Cuts

// Sets a range aside and uses it, until the device fails.
Result<void> use(Rig& rig, InodeId id) {
  const auto own = [](int value) { return blocks(3, value); };
  SFS_TRY(rig.fs().allocate(id, 0, 2 * kBlockSize, 40 * kBlockSize));
  SFS_TRY(rig.write(id, 10 * kBlockSize, own('A')));
  SFS_TRY(rig.fs().fsync(id, false));
  SFS_TRY(rig.fs().allocate(id, FALLOC_FL_ZERO_RANGE, 11 * kBlockSize, 20 * kBlockSize));
  SFS_TRY(rig.write(id, 11 * kBlockSize, own('B')));
  SFS_TRY(rig.write(id, 30 * kBlockSize, own('C')));
  SFS_TRY(rig.fs().fsync(id, true));
  SFS_TRY(rig.write(id, 40 * kBlockSize, own('D')));
  return rig.fs().sync();
}

void expect_zeroes_or_own(Rig& rig, uint64_t step) {
  for (const std::byte each : rig.read(rig.lookup("f"), 0, 1 << 20)) {
    const auto found = static_cast<char>(each);
    ASSERT_TRUE(found == 0 || (found >= 'A' && found <= 'D')) << "step " << step << ": " << found;
  }
}

// Each write and each flush of the device is the last one that arrives. The filesystem is of the
// format before unwritten extents.
TEST(PreallocationCut, ShowsZeroesOrWhatWasWrittenAndTheVersionThatKnowsThem) {
  for (const bool log : {false, true}) {
    for (const bool flushes : {false, true}) {
      bool done = false;
      for (uint64_t step = 0; !done; ++step) {
        Rig::Options options = small(log);
        options.version = meta::kOldestVersion;
        options.mount.write_behind_mib = 0;
        Rig rig(options);
        const InodeId old = rig.create("old");
        ASSERT_TRUE(rig.write(old, 0, blocks(1500, 'o')).ok());
        ASSERT_TRUE(rig.fs().sync().ok());
        ASSERT_TRUE(rig.fs().truncate(old, 0).ok());
        ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
        const InodeId id = rig.create("f");
        ASSERT_TRUE(rig.fs().fsync(id, false).ok());
        EXPECT_EQ(rig.fs().engine().superblock().version, meta::kOldestVersion);
        blockdev::Faults faults;
        (flushes ? faults.fail_flushes_after : faults.fail_writes_after) = step;
        faults.tear_failing_writes = true;
        rig.device().set_faults(faults);
        done = use(rig, id).ok();
        rig.device().set_faults({});
        log ? rig.power_cut_losing_meta(step) : rig.power_cut(step);
        EXPECT_TRUE(rig.check().sound()) << "step " << step;
        expect_zeroes_or_own(rig, step);
        if (HasFatalFailure()) return;
        const auto pieces = rig.fs().engine().map(rig.lookup("f"), FileBlock{0}, 100);
        if (std::ranges::any_of(*pieces, &meta::Piece::unwritten)) {
          EXPECT_EQ(pair::read_label(rig.device())->version, meta::kUnwrittenVersion);
          EXPECT_EQ(rig.fs().engine().superblock().version, meta::kUnwrittenVersion);
        }
        EXPECT_TRUE(use(rig, rig.lookup("f")).ok()) << "step " << step;
        ASSERT_LT(step, 300U);
      }
    }
  }
}

// A restore looks at the block that the fsync named until a later chunk settles that.
TEST(PreallocationCut, AWriteIntoAZeroedRangeTakesNothingBackOfAnFsync) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Rig::Options options = small(true);
    options.mount.write_behind_mib = 0;
    Rig rig(options);
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.fs().sync().ok());
    ASSERT_TRUE(rig.write(id, 0, blocks(2, 'A')).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    ASSERT_TRUE(rig.fs().allocate(id, FALLOC_FL_ZERO_RANGE, 0, kBlockSize).ok());
    ASSERT_TRUE(rig.write(id, 0, blocks(1, 'B')).ok());
    rig.power_cut_losing_meta(seed);
    EXPECT_EQ(rig.fs().attributes(rig.lookup("f"))->size, 2 * kBlockSize) << "seed " << seed;
    EXPECT_EQ(rig.read(rig.lookup("f"), kBlockSize, kBlockSize), blocks(1, 'A'));
    expect_zeroes_or_own(rig, seed);
    if (HasFatalFailure()) return;
  }
}

// The label may be behind META after a cut: the next mount writes it.
TEST(PreallocationCut, AVersionThatOnlyMetaHasIsTheLabelsAfterTheNextMount) {
  Rig::Options options = small(true);
  options.version = meta::kOldestVersion;
  Rig rig(options);
  ASSERT_TRUE(rig.fs().engine().raise_version(meta::kUnwrittenVersion).ok());
  EXPECT_EQ(pair::read_label(rig.device())->version, meta::kOldestVersion);
  rig.power_cut(1);
  EXPECT_EQ(pair::read_label(rig.device())->version, meta::kUnwrittenVersion);
}

}  // namespace
}  // namespace streamfs::data
