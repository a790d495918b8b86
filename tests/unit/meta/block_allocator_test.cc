#include "fuse-fs/meta/block_allocator.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/superblock.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

constexpr Size kBig{.meta_bytes = 16 << 20, .data_blocks = 1 << 19};  // 2 GiB

uint64_t region_of(BlockNo block) {
  return block.value / BlockAllocator::kRegionBlocks;
}

TEST(BlockAllocator, AMegabyteIsOneRun) {
  Filesystem fs(kBig);
  std::optional<BlockNo> near;
  for (int i = 0; i < 100; ++i) {
    const auto run = fs->blocks().reserve(256, kDefaultPStream, near);
    ASSERT_TRUE(run.ok());
    EXPECT_EQ(run->count, 256U) << i;
    EXPECT_EQ(run->first, near.value_or(run->first)) << "an append stays contiguous";
    near = BlockNo{run->first.value + run->count};
  }
}

TEST(BlockAllocator, StreamsNeverShareARegion) {
  Filesystem fs(kBig);
  std::vector<std::set<uint64_t>> regions(8);
  for (int round = 0; round < 50; ++round) {
    for (uint16_t stream = 0; stream < 8; ++stream) {
      const auto run = fs->blocks().reserve(100, PStreamId{stream}, std::nullopt);
      ASSERT_TRUE(run.ok());
      regions[stream].insert(region_of(run->first));
      regions[stream].insert(region_of(BlockNo{run->first.value + run->count - 1}));
    }
  }
  std::set<uint64_t> all;
  size_t total = 0;
  for (const auto& own : regions) {
    all.insert(own.begin(), own.end());
    total += own.size();
  }
  EXPECT_EQ(all.size(), total);
}

TEST(BlockAllocator, EveryBlockIsGivenOnceAndThenThereAreNoMore) {
  Filesystem fs({.meta_bytes = 8 << 20, .data_blocks = 50'000});
  const uint64_t free = fs->blocks().free_blocks();
  std::set<uint64_t> given;
  for (uint64_t round = 0;; ++round) {
    const PStreamId stream{static_cast<uint16_t>(round % 5)};
    const auto run = fs->blocks().reserve(1 + round % 5 * 77, stream, std::nullopt);
    if (!run) break;
    for (uint64_t i = 0; i < run->count; ++i) {
      EXPECT_TRUE(given.insert(run->first.value + i).second);
      EXPECT_TRUE(fs->geometry().valid_block(run->first.value + i));
    }
  }
  EXPECT_EQ(given.size(), free);
  EXPECT_EQ(fs->blocks().free_blocks(), 0U);
}

TEST(BlockAllocator, ACancelledRunIsFreeAgain) {
  Filesystem fs;
  const uint64_t free = fs->blocks().free_blocks();
  const auto run = fs->blocks().reserve(300, kDefaultPStream, std::nullopt);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(fs->blocks().free_blocks(), free - run->count);
  fs->blocks().cancel(*run);
  EXPECT_EQ(fs->blocks().free_blocks(), free);
  EXPECT_FALSE(fs.is_allocated(run->first));
}

TEST(BlockAllocator, ADiscardedRunIsTrimmedBeforeItIsFreeAndWaitsForNoRecord) {
  Filesystem fs;
  const uint64_t free = fs->blocks().free_blocks();
  const auto run = *fs->blocks().reserve(64, kDefaultPStream, std::nullopt);
  fs->blocks().discard(run);
  EXPECT_EQ(fs->blocks().free_blocks(), free - run.count);
  EXPECT_EQ(fs->blocks().pending_blocks(), run.count);
  EXPECT_FALSE(fs->blocks().next_trim(64).has_value()) << "that would be journalled";
  const auto trimming = fs->blocks().next_discard(64);
  ASSERT_EQ(trimming, run);
  EXPECT_EQ(fs->blocks().free_blocks(), free - run.count);
  fs->blocks().trimmed(*trimming);
  EXPECT_EQ(fs->blocks().free_blocks(), free);
  EXPECT_EQ(fs->blocks().pending_blocks(), 0U);
}

TEST(BlockAllocator, AWholeRunGoesOverGroupsOrIsNone) {
  Filesystem fs({.meta_bytes = 8 << 20, .data_blocks = 100'000});
  const uint64_t free = fs->blocks().free_blocks();
  const auto odd = *fs->blocks().reserve(7, kDefaultPStream, std::nullopt);
  EXPECT_FALSE(fs->blocks().reserve_whole(free).has_value());
  const auto run = fs->blocks().reserve_whole(70'000);
  ASSERT_TRUE(run.has_value());
  EXPECT_GE(run->first.value, odd.first.value + odd.count);
  EXPECT_EQ(fs->blocks().free_blocks(), free - 70'007);
  while (const auto rest = fs->blocks().reserve(500, kDefaultPStream, std::nullopt)) {
    EXPECT_TRUE(rest->first.value + rest->count <= run->first.value ||
                rest->first.value >= run->first.value + run->count);
  }
  fs->blocks().cancel(*run);
  EXPECT_EQ(fs->blocks().free_blocks(), 70'000U);
}

TEST(BlockAllocator, ARunIsReservedExactlyOrNotAtAll) {
  Filesystem fs(kBig);
  BlockAllocator& blocks = fs->blocks();
  const uint64_t free = blocks.free_blocks();
  const BlockRun over_regions{BlockNo{10 * BlockAllocator::kRegionBlocks - 4}, 8};
  ASSERT_TRUE(blocks.reserve_exactly(over_regions));
  EXPECT_EQ(blocks.free_blocks(), free - 8);
  EXPECT_FALSE(blocks.reserve_exactly({BlockNo{over_regions.first.value + 7}, 2}));
  EXPECT_FALSE(blocks.reserve_exactly({BlockNo{over_regions.first.value - 1}, 2}));
  EXPECT_FALSE(blocks.reserve_exactly({BlockNo{kBig.data_blocks - 1}, 2}));
  blocks.cancel(over_regions);
  EXPECT_EQ(blocks.free_blocks(), free);
  const auto filling = blocks.reserve(4, PStreamId{1}, std::nullopt);
  ASSERT_TRUE(filling.ok());
  EXPECT_FALSE(blocks.reserve_exactly({BlockNo{filling->first.value + 8}, 8}))
      << "the pStream will want it";
}

TEST(BlockAllocator, AFreedRunWaitsForItsRecordAndItsTrim) {
  Filesystem fs;
  const auto run = *fs->blocks().reserve(64, kDefaultPStream, std::nullopt);
  const uint64_t free = fs->blocks().free_blocks();
  fs->blocks().committed_allocation(run);
  fs->blocks().committed_free(run, TxId{10});
  fs->blocks().release_up_to(TxId{9});
  EXPECT_FALSE(fs->blocks().next_trim(64).has_value());
  EXPECT_EQ(fs->blocks().free_blocks(), free);
  EXPECT_EQ(fs->blocks().pending_blocks(), 64U);
  fs->blocks().release_up_to(TxId{10});
  uint64_t trimmed = 0;
  while (const auto part = fs->blocks().next_trim(16)) {
    EXPECT_LE(part->count, 16U);
    EXPECT_EQ(fs->blocks().free_blocks(), free + trimmed);
    fs->blocks().trimmed(*part);
    trimmed += part->count;
  }
  EXPECT_EQ(trimmed, 64U);
  EXPECT_EQ(fs->blocks().pending_blocks(), 0U);
}

// More groups than a stream looks at when it wants a region.
TEST(BlockAllocator, TheLastFreeBlocksAreFoundWhereverTheyAre) {
  constexpr uint64_t kGroups = 150, kWords = BlockAllocator::kGroupBlocks / 64;
  Filesystem fs({.meta_bytes = 48 << 20, .data_blocks = kGroups * BlockAllocator::kGroupBlocks});
  fs.close();
  const Geometry geometry = *Geometry::from(*load_superblock(fs.region(), false));
  for (uint64_t word = 0; word < kGroups * kWords; ++word)
    fs.region().store_word(geometry.bitmap_word(RegionKind::kBlockBitmap, word), ~uint64_t{0});
  // Two blocks near the end, one in the middle, and 64 that only wait for a trim.
  const uint64_t last = geometry.bitmap_word(RegionKind::kBlockBitmap, kGroups * kWords - 1);
  fs.region().store_word(last, ~(uint64_t{3} << 60));
  const uint64_t middle = geometry.bitmap_word(RegionKind::kBlockBitmap, 70 * kWords + 5);
  fs.region().store_word(middle, ~uint64_t{1});
  const uint64_t waiting = 120 * kWords + 9;
  fs.region().store_word(geometry.bitmap_word(RegionKind::kBlockBitmap, waiting), 0);
  fs.region().store_word(geometry.bitmap_word(RegionKind::kUntrimmed, waiting), ~uint64_t{0});
  fs.open();
  uint64_t given = 0;
  while (const auto run = fs->blocks().reserve(10, PStreamId{1}, std::nullopt)) given += run->count;
  EXPECT_EQ(given, 3U);
  EXPECT_EQ(fs->blocks().free_blocks(), 0U);
  EXPECT_EQ(fs->blocks().pending_blocks(), 64U);
  const auto trim = fs->blocks().next_trim(64);
  ASSERT_TRUE(trim.has_value());
  EXPECT_EQ(*trim, (BlockRun{BlockNo{waiting * 64}, 64}));
  fs->blocks().trimmed(*trim);
  EXPECT_EQ(fs->blocks().reserve(100, PStreamId{2}, std::nullopt)->count, 64U);
  fs.abandon();
}

}  // namespace
}  // namespace streamfs::meta
