// Growing: what the plan promises, and an engine that takes what is new while it works.
#include "fuse-fs/meta/growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/label.h"
#include "tests/unit/meta/filesystem.h"
#include "tests/unit/meta/growth_plans.h"

namespace streamfs::meta {
namespace {

TEST(PlanGrowth, WithNothingNewThereIsNothingToDo) {
  const Superblock now = planned(1 << 16);
  const auto next = plan_growth(now, of_a_file(now, now.data_blocks));
  ASSERT_TRUE(next.ok());
  EXPECT_TRUE(same_size(now, *next));
}

TEST(PlanGrowth, NothingMovesAndFilesKeepTheirShare) {
  const Superblock now = planned(1 << 18);
  const auto next = plan_growth(now, of_a_file(now, 5 << 18));
  ASSERT_TRUE(next.ok()) << next.error().message();
  EXPECT_EQ(next->data_blocks, 5U << 18);
  expect_nothing_moved(now, *next);
  EXPECT_GE(files_per_block(*next), files_per_block(now) * 0.99);
  EXPECT_LE(files_per_block(*next), files_per_block(now) * 1.2);
}

// DATA grows by a block or by a tenth at a time: maps that grow ahead make the segments last.
TEST(PlanGrowth, ManySmallGrowthsDoNotUseUpTheSegments) {
  Superblock now = planned(1 << 18);
  const Superblock first = now;
  for (int i = 0; i < 15; ++i) {
    for (const uint64_t blocks : {now.data_blocks + 1, now.data_blocks + now.data_blocks / 10}) {
      const auto next = plan_growth(now, of_a_file(now, blocks));
      ASSERT_TRUE(next.ok()) << i << ": " << next.error().message();
      now = *next;
    }
  }
  EXPECT_GT(now.data_blocks, 4 * first.data_blocks);
  expect_nothing_moved(first, now);
}

TEST(PlanGrowth, WhenTheSegmentsAreUsedUpItIsSaid) {
  Superblock now = planned(1 << 16);
  Result<Superblock> next = now;
  int grown = 0;
  while (grown < 64) {
    next = plan_growth(now, of_a_file(now, now.data_blocks * 2));
    if (!next.ok()) break;
    now = *next;
    ++grown;
  }
  EXPECT_EQ(next.error().code, ENOSPC);
  EXPECT_NE(next.error().context.find("copy it"), std::string::npos) << next.error().context;
  EXPECT_GE(grown, 5);
}

TEST(PlanGrowth, ADeviceThatIsTooSmallIsToldHowMuchIsNeeded) {
  const Superblock now = planned(1 << 18);
  GrowthRequest request = of_a_file(now, 1 << 20);
  request.extensible = false;
  const auto refused = plan_growth(now, request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ENOSPC);
  const std::string& text = refused.error().context;
  const size_t at = text.find("at least ");
  ASSERT_NE(at, std::string::npos) << text;
  request.meta_bytes = std::stoull(text.substr(at + 9)) * kMiB;
  const auto enough = plan_growth(now, request);
  EXPECT_TRUE(enough.ok()) << enough.error().message();
}

TEST(PlanGrowth, NothingShrinks) {
  const Superblock now = planned(1 << 18);
  EXPECT_EQ(plan_growth(now, of_a_file(now, now.data_blocks - 1)).error().code, EOPNOTSUPP);
  GrowthRequest request = of_a_file(now, now.data_blocks);
  request.wanted_meta = now.meta_size - kUnitSize;
  EXPECT_EQ(plan_growth(now, request).error().code, EOPNOTSUPP);
  request.wanted_meta = now.meta_size + 64 * kMiB;
  EXPECT_EQ(plan_growth(now, request)->meta_size, now.meta_size + 64 * kMiB);
  request.extensible = false;
  EXPECT_EQ(plan_growth(now, request).error().code, ENOSPC);
}

TEST(PlanGrowth, TheLogHasRoomForALargerMeta) {
  const Superblock now = planned(1 << 18, true);
  const DataLabel label = make_label(now).label;
  GrowthRequest request = of_a_file(now, 1 << 20);
  request.snapshot_blocks = snapshot_capacity(label);
  const auto next = plan_growth(now, request);
  ASSERT_TRUE(next.ok()) << next.error().message();
  const DataLabel grown = grown_label(label, *next);
  EXPECT_GE(snapshot_capacity(grown), snapshot_blocks_for(*next));
  // A block of the log is nobody else's, and belongs to it once.
  const Geometry geometry = Geometry::from(*next).value();
  std::set<uint64_t> logs;
  for (const uint64_t generation : {uint64_t{0}, uint64_t{1}}) {
    for (const BlockRange& range : snapshot_area(grown, generation)) {
      for (uint64_t block = range.first; block < range.first + range.count; ++block) {
        ASSERT_TRUE(logs.insert(block).second) << block;
        ASSERT_FALSE(geometry.valid_block(block)) << block;
        ASSERT_LT(block, next->data_blocks);
      }
    }
  }
  EXPECT_TRUE(geometry.valid_block(next->first_data_block));
  EXPECT_TRUE(geometry.valid_block(next->data_blocks - 1));
  EXPECT_FALSE(geometry.valid_blocks(now.data_blocks - 1, 2)) << "half of it is the log's";
  request.data_blocks = now.data_blocks;
  request.wanted_meta = now.meta_size * 4;
  const auto refused = plan_growth(now, request);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().context.find("make DATA larger"), std::string::npos);
}

TEST(Geometry, AReaderSeesTheOldOrTheNewSizeWhole) {
  const Superblock small = planned(1 << 16);
  const Superblock large = plan_growth(small, of_a_file(small, 1 << 17)).value();
  Geometry geometry = Geometry::from(small).value();
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const Superblock& now = geometry.super();
        wrong += same_size(now, small) || same_size(now, large) ? 0 : 1;
        const uint64_t units = geometry.heap_units();
        wrong += geometry.unit_of(geometry.unit_offset(units - 1)) == units - 1 ? 0 : 1;
      }
    });
  }
  geometry.extend(large);
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

// ---- The engine

class Growing : public testing::Test {
 protected:
  static constexpr Size kSmall{.meta_bytes = 2 << 20, .data_blocks = 20'000};

  void grow(uint64_t data_blocks, uint64_t meta_bytes) {
    ASSERT_TRUE(fs_.region().grow(meta_bytes).ok());
    GrowthRequest request;
    request.data_blocks = data_blocks;
    request.meta_bytes = meta_bytes;
    const auto larger = plan_growth(fs_->geometry().super(), request);
    ASSERT_TRUE(larger.ok()) << larger.error().message();
    const auto grown = fs_->grow(*larger, [](const Superblock&) { return Result<void>(); });
    ASSERT_TRUE(grown.ok()) << grown.error().message();
  }
  std::set<uint64_t> reserve_everything() {
    std::set<uint64_t> blocks;
    while (const auto run = fs_->blocks().reserve(777, kDefaultPStream, {})) {
      for (uint64_t i = 0; i < run->count; ++i) {
        EXPECT_TRUE(blocks.insert(run->first.value + i).second) << "given twice";
        EXPECT_TRUE(fs_->geometry().valid_block(run->first.value + i));
      }
    }
    return blocks;
  }
  uint64_t create_until_full(const std::string& prefix) {
    for (uint64_t made = 0;; ++made) {
      const auto file =
          fs_->create(fs_.root(), prefix + std::to_string(made), node(S_IFREG | 0600));
      if (!file) return made;
    }
  }
  void forget(InodeId id, uint64_t count) {
    if (!fs_->forget(id, count)) return;
    const auto freed = fs_->free_orphan(id);
    EXPECT_TRUE(freed.ok()) << freed.error().message();
  }
  Filesystem fs_{kSmall};
};

TEST_F(Growing, EveryOldAndNewBlockIsGivenOnce) {
  const uint64_t first = fs_->geometry().super().first_data_block;
  const auto some = fs_->blocks().reserve(900, kDefaultPStream, {});
  ASSERT_TRUE(some.ok());
  // Within a word, a region, a group; over several groups.
  uint64_t meta = kSmall.meta_bytes;
  for (const uint64_t blocks : {20'001U, 20'031U, 23'000U, 32'768U, 32'769U, 150'000U}) {
    grow(blocks, meta += kMiB);
    EXPECT_EQ(fs_->blocks().free_blocks(), blocks - first - some->count) << blocks;
    EXPECT_EQ(fs_->space().data_blocks, blocks - first);
  }
  const std::set<uint64_t> given = reserve_everything();
  EXPECT_EQ(given.size(), 150'000 - first - some->count);
  EXPECT_EQ(*given.rbegin(), 149'999U);
}

TEST_F(Growing, AFullDeviceHasRoomAgain) {
  const auto before = reserve_everything();
  EXPECT_EQ(fs_->blocks().free_blocks(), 0U);
  grow(70'000, 4 * kMiB);
  const auto after = reserve_everything();
  EXPECT_EQ(after.size(), 50'000U);
  EXPECT_EQ(*after.begin(), 20'000U);
}

TEST_F(Growing, WhatWasCountedBeforeIsCountedOnce) {
  const Space before = fs_->space();  // counts everything
  grow(100'000, 8 * kMiB);
  const Space after = fs_->space();
  EXPECT_EQ(after.free_blocks, before.free_blocks + 80'000);
  EXPECT_EQ(after.free_units - before.free_units, after.heap_units - before.heap_units);
  fs_.reopen();
  EXPECT_EQ(fs_->space().free_blocks, after.free_blocks);
  EXPECT_EQ(fs_->space().free_units, after.free_units);
}

TEST_F(Growing, AFullHeapTakesMoreFilesAndAllOfThemStay) {
  const uint64_t before = create_until_full("old");
  const uint64_t possible = fs_->space().inodes_possible;
  grow(kSmall.data_blocks, 4 * kMiB);
  EXPECT_GT(fs_->space().inodes_possible, possible);
  const uint64_t added = create_until_full("new");
  EXPECT_GT(added, before);
  fs_.reopen();  // and check() finds it sound
  EXPECT_EQ(fs_.names(fs_.root()).size(), before + added);
  EXPECT_TRUE(fs_.exists("new" + std::to_string(added - 1)));
}

TEST_F(Growing, DataInNewBlocksIsThereAfterACut) {
  reserve_everything();
  grow(60'000, 4 * kMiB);
  const InodeId file = fs_.file("f");
  fs_.write(file, 0, 5000);
  fs_.commit(file);
  fs_.crash();
  EXPECT_EQ(fs_->geometry().data_blocks(), 60'000U);
  const auto found = fs_->lookup(fs_.root(), "f");
  ASSERT_TRUE(found.ok());
  uint64_t blocks = 0;
  const auto pieces = fs_->map(found->id, FileBlock{0}, 5000);
  ASSERT_TRUE(pieces.ok());
  for (const Piece& piece : *pieces) {
    EXPECT_GE(piece.block.value, 20'000U);
    std::array<uint32_t, 1> crc{};
    fs_->checksums(piece.block, crc);
    EXPECT_EQ(crc[0], piece.block.value + 1);
    blocks += piece.length;
  }
  EXPECT_EQ(blocks, 5000U);
}

TEST_F(Growing, WhatIsNewOfMetaMayHoldAnything) {
  ASSERT_TRUE(fs_.region().grow(4 * kMiB).ok());
  for (uint64_t at = kSmall.meta_bytes; at < 4 * kMiB; at += kWordSize) {
    fs_.region().store_word(at, 0x0101'0101'0101'0101 * (at / kWordSize % 7));
  }
  grow(60'000, 4 * kMiB);
  const InodeId file = fs_.file("f");
  fs_.write(file, 0, 30'000);
  fs_.commit(file);
  create_until_full("n");
  fs_.reopen();
}

TEST_F(Growing, WhenDataCannotBeToldNothingNewIsUsed) {
  ASSERT_TRUE(fs_.region().grow(4 * kMiB).ok());
  GrowthRequest request;
  request.data_blocks = 60'000;
  request.meta_bytes = 4 * kMiB;
  const Superblock larger = plan_growth(fs_->geometry().super(), request).value();
  const auto refused = fs_->grow(larger, [](const Superblock&) { return Error{EIO, "DATA"}; });
  EXPECT_EQ(refused.error().code, EIO);
  EXPECT_EQ(fs_->space().data_blocks + fs_->geometry().reserved_blocks(), 20'000U);
  EXPECT_EQ(*reserve_everything().rbegin(), 19'999U);
  fs_.file("f");
  fs_.reopen();
  EXPECT_TRUE(fs_.exists("f"));
}

TEST_F(Growing, FilesComeAndGoMeanwhile) {
  std::atomic<bool> stop{false};
  std::atomic<int> done{0};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 3; ++worker) {
    workers.emplace_back([&, worker] {
      for (int i = 0; !stop; ++i, ++done) {
        const std::string name = std::to_string(worker) + "." + std::to_string(i % 50);
        const auto made = fs_->create(fs_.root(), name, node(S_IFREG | 0600));
        if (!made) {  // there already, or no room until the next growth
          const auto gone = fs_->unlink(fs_.root(), name);
          if (gone) forget(*gone, 0);
          continue;
        }
        const auto run = fs_->blocks().reserve(20, PStreamId{static_cast<uint16_t>(worker)}, {});
        if (run) {
          WriteResult written;
          written.added.push_back({FileBlock{0}, run->first, run->count, kDefaultVStream});
          written.checksums.push_back({run->first, 7});
          written.end_offset = run->count * kBlockSize;
          written.epoch = 1;
          EXPECT_TRUE(fs_->finish_write(made->id, written).ok());
          EXPECT_TRUE(fs_->commit_inode(made->id, 1).ok());
        }
        (void)fs_->space();
        forget(made->id, 1);
      }
    });
  }
  uint64_t blocks = kSmall.data_blocks, meta = kSmall.meta_bytes;
  for (int i = 1; i <= 8; ++i) {
    while (done < 100 * i) std::this_thread::yield();
    grow(blocks += 15'000, meta += kMiB);
  }
  while (done < 1000) std::this_thread::yield();
  stop = true;
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(fs_->geometry().data_blocks(), blocks);
  fs_.reopen();
}

// ---- META that grows by itself: mkfs's plan, and steps of half the heap up to the largest size

TEST(MetaPlan, TheFirstSizeHoldsAFilesystemForEveryDataAndMeanFileSize) {
  for (uint64_t mib = 32; mib <= uint64_t{4} << 20; mib = mib * 5 / 4) {
    for (uint64_t mean = 4096; mean <= 64 * kMiB; mean = mean * 3 / 2) {
      FormatOptions options;
      options.data_blocks = mib * kBlocksPerMiB;
      options.mean_file_bytes = mean;
      options.meta_log = true;
      const uint64_t first = first_meta_size(options);
      const auto super = plan_format(first, pmem::MetaClass::kSynced, options);
      ASSERT_TRUE(super.ok()) << mib << " MiB, " << mean << ": " << super.error().message();
      EXPECT_GE(region_bytes(*super, RegionKind::kHeap), kMiB - kUnitSize) << mib << ' ' << mean;
      EXPECT_LE(first, meta_size_max(*super)) << mib << ' ' << mean;
    }
  }
}

// Grows META in steps of half its heap to its largest size, and returns the superblock then.
Superblock grown_by_itself(Superblock now) {
  const uint64_t most = meta_size_max(now);
  const DataLabel label = make_label(now).label;
  uint64_t capacity = snapshot_capacity(label), next = now.first_data_block;
  while (now.meta_size < most) {
    GrowthRequest request = of_a_file(now, now.data_blocks);
    const uint64_t half = round_up(region_bytes(now, RegionKind::kHeap) / 2, kMiB);
    request.wanted_meta = std::min(most, now.meta_size + half);
    request.planned_meta = most;
    request.spare_blocks = now.data_blocks;
    request.snapshot_blocks = capacity;
    request.find_log_room = [&](uint64_t blocks) {
      capacity += blocks / 2;
      return std::optional(BlockRange{std::exchange(next, next + blocks), blocks});
    };
    const Result<Superblock> larger = plan_growth(now, request);
    EXPECT_TRUE(larger.ok()) << now.meta_size << " of " << most << ": " << larger.error().message();
    if (!larger.ok()) break;
    now = *larger;
  }
  return now;
}

TEST(PlanGrowth, ByItselfMetaReachesItsLargestSizeInOneSegment) {
  for (const uint64_t gib : {1U, 3U, 4U, 100U}) {
    const Superblock grown = grown_by_itself(planned(gib << 18, true));
    EXPECT_EQ(grown.meta_size, meta_size_max(grown)) << gib;
    EXPECT_EQ(segments_of(grown, RegionKind::kHeap), 1U) << gib;
    EXPECT_EQ(segments_of(grown, RegionKind::kHeapMap), 1U) << gib;
    EXPECT_EQ(grown.log_extensions[3], 0U) << gib;
  }
}

// An older mkfs made the maps for the size that META has, and not for a larger one.
TEST(PlanGrowth, AnOlderFilesystemReachesTheLargestSizeToo) {
  for (const uint64_t gib : {4U, 64U, 1024U}) {
    FormatOptions options;
    options.data_blocks = gib << 18;
    options.mean_file_bytes = 256 * 1024;
    options.meta_log = true;
    const uint64_t size = meta_size_max(options);
    Superblock old = plan_format(size, pmem::MetaClass::kSynced, options).value();
    old.mean_file_blocks = 0;
    const Superblock grown = grown_by_itself(old);
    EXPECT_EQ(grown.meta_size, meta_size_max(old)) << gib;
    EXPECT_LE(segments_of(grown, RegionKind::kHeap), 2U) << gib;
    EXPECT_EQ(segments_of(grown, RegionKind::kChecksums), 1U) << gib;
  }
}

}  // namespace
}  // namespace streamfs::meta
