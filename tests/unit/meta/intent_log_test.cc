// The intent log by itself: what open() finds after batches, rounds, cuts and damage.
#include "fuse-fs/meta/intent_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/recording_region.h"

namespace streamfs::meta::intent_log_test {
namespace {

constexpr uint64_t kMetaSize = 4 << 20, kLogBytes = 1 << 20;
constexpr uint64_t kBlocks = 4096;

using Block = std::vector<std::byte>;

Block filled(int value, uint64_t lines = kBlockSize / kLineSize) {
  Block block(kBlockSize);
  std::memset(block.data(), value, lines * kLineSize);
  return block;
}

class IntentLogTest : public testing::Test {
 protected:
  IntentLogTest() { make(region_); }

  void make(pmem::Region& region) {
    FormatOptions options;
    options.data_blocks = kBlocks;
    options.random_seed = 7;
    options.intent_log_bytes = kLogBytes;
    const auto super = plan_format(kMetaSize, pmem::MetaClass::kPersistent, options);
    ASSERT_TRUE(super.ok()) << super.error().message();
    ASSERT_TRUE(format(region, *super, Timestamp{1, 0}).ok());
    geometry_ = Geometry::from(*load_superblock(region, false)).value();
    for (uint64_t word = 0; word < kBlocks / 64; ++word)
      region.store_word(geometry_.bitmap_word(RegionKind::kBlockBitmap, word), ~uint64_t{0});
    region.fence(region.flush(0, region.size()));
  }
  std::unique_ptr<IntentLog> open() { return IntentLog::open(region_, geometry_).value(); }
  // A log that is ready for batches.
  std::unique_ptr<IntentLog> start() {
    auto log = open();
    log->start();
    return log;
  }
  static IntentLog::Content content(uint64_t block, const Block& bytes) {
    return {InodeId{9}, BlockNo{block}, VStreamId{3}, bytes};
  }
  IntentLog::Place put(IntentLog& log, const IntentLog::Content& content, bool keep = true) {
    const auto batch = log.begin(1);
    EXPECT_NE(batch, nullptr);
    const IntentLog::Place place = batch->append(content);
    if (!keep) return place;
    region_.fence(batch->flushed());
    batch->keep();
    return place;
  }
  // Returns the blocks that a mount after a kill finds.
  std::map<uint64_t, Block> found() { return found_in(region_); }
  std::map<uint64_t, Block> found_in(pmem::Region& region) {
    std::map<uint64_t, Block> out;
    const auto log = IntentLog::open(region, geometry_);
    if (!log.ok()) return out;
    for (const auto& each : (*log)->found()) {
      Block& block = out[each.block.value];
      block.resize(kBlockSize);
      (*log)->read(each.place, block);
    }
    return out;
  }

  pmem::RecordingRegion region_{kMetaSize, pmem::MetaClass::kPersistent};
  Geometry geometry_;
};

TEST_F(IntentLogTest, WhatIsKeptIsFoundAndTheNewestCounts) {
  const auto log = start();
  put(*log, content(2000, filled(1)));
  put(*log, content(2001, filled(2, 3)));
  put(*log, content(2000, filled(4)));
  EXPECT_EQ(found(), (std::map<uint64_t, Block>{{2000, filled(4)}, {2001, filled(2, 3)}}));
}

TEST_F(IntentLogTest, AnEntryHoldsNoLinesOfZeroes) {
  const auto log = start();
  const uint64_t before = log->used_bytes();
  put(*log, content(2000, filled(1, 2)));
  EXPECT_EQ(log->used_bytes() - before, 3 * kLineSize);
}

TEST_F(IntentLogTest, ABatchOfTheMostBytesFillsASegment) {
  constexpr uint64_t kMost = IntentLog::kBatchBytesMax / kBlockSize;
  const auto log = start();
  EXPECT_EQ(log->batch_bytes_max(), kLogBytes / 4);
  EXPECT_EQ(log->begin(kMost + 1), nullptr);
  const auto batch = log->begin(kMost);
  ASSERT_NE(batch, nullptr);
  for (uint64_t i = 0; i < kMost; ++i) batch->append(content(2000 + i, filled(1)));
  region_.fence(batch->flushed());
  batch->keep();
  EXPECT_EQ(found().size(), kMost);
}

TEST_F(IntentLogTest, WhatIsTakenBackIsNotFoundAndIsOverwritten) {
  const auto log = start();
  put(*log, content(2000, filled(1)));
  put(*log, content(2001, filled(2)), false);
  EXPECT_EQ(found(), (std::map<uint64_t, Block>{{2000, filled(1)}}));
  put(*log, content(2002, filled(3)));
  EXPECT_EQ(found(), (std::map<uint64_t, Block>{{2000, filled(1)}, {2002, filled(3)}}));
  EXPECT_EQ(log->counts().taken_back, 1);
}

TEST_F(IntentLogTest, OfWhatIsExpiredNothingIsFound) {
  const auto log = start();
  put(*log, content(2000, filled(1)));
  const uint64_t through = log->cut();
  put(*log, content(2001, filled(2)));
  log->expire(through);
  EXPECT_EQ(found(), (std::map<uint64_t, Block>{{2001, filled(2)}}));
  log->expire(log->cut());
  EXPECT_TRUE(found().empty());
}

TEST_F(IntentLogTest, BlocksThatAreNotAllocatedAreNotFound) {
  const auto log = start();
  put(*log, content(2000, filled(1)));
  region_.store_word(geometry_.bitmap_word(RegionKind::kBlockBitmap, 2000 / 64), 0);
  EXPECT_TRUE(found().empty());
}

TEST_F(IntentLogTest, AFullLogTakesNoMoreUntilItsEntriesExpire) {
  const auto log = start();
  for (int round = 0; round < 5; ++round) {
    uint64_t block = 1000;
    while (const auto batch = log->begin(60)) {
      for (int i = 0; i < 60; ++i) batch->append(content(block++, filled(round + 1)));
      region_.fence(batch->flushed());
      batch->keep();
    }
    EXPECT_GT(log->used_bytes(), log->bytes() / 2);
    const auto all = found();
    EXPECT_EQ(all.size(), block - 1000);
    for (const auto& [at, bytes] : all) ASSERT_EQ(bytes, filled(round + 1)) << at;
    log->expire(log->cut());
    EXPECT_EQ(log->used_bytes(), 0);
    EXPECT_TRUE(found().empty());
  }
}

TEST_F(IntentLogTest, ADeltaHoldsTheLinesThatDiffer) {
  const auto log = start();
  Block block = filled(1);
  auto base = put(*log, content(2000, block));
  for (int i = 0; i < 100; ++i) {
    Block next = block;
    next[static_cast<size_t>(i) * 40] = std::byte{77};
    IntentLog::Content delta = content(2001 + static_cast<uint64_t>(i), next);
    delta.base = base;
    delta.base_bytes = block;
    const uint64_t before = log->counts().lines;
    base = put(*log, delta);
    block = next;
    EXPECT_TRUE(log->counts().lines - before == 2 || i >= 64) << i;
  }
  EXPECT_LT(log->counts().delta_entries, 100);  // chains are bounded
  EXPECT_GT(log->counts().delta_entries, 95);
  EXPECT_EQ(found().at(2100), block);
}

TEST_F(IntentLogTest, NoEntryBuildsOnOneThatMayExpireBeforeIt) {
  const auto log = start();
  const Block fresh = filled(2), old = filled(1);
  IntentLog::Content delta = content(2001, fresh);
  delta.base = put(*log, content(2000, old));
  delta.base_bytes = old;
  const uint64_t through = log->cut();
  put(*log, delta);
  EXPECT_EQ(log->counts().delta_entries, 0);
  log->expire(through);
  EXPECT_EQ(found(), (std::map<uint64_t, Block>{{2001, filled(2)}}));
}

// A batch whose first entry was torn leaves later entries whole. A new batch of the next mount ends
// where such an entry begins.
TEST_F(IntentLogTest, WhatACutBatchLeftNeverCounts) {
  {
    const auto log = start();
    const auto batch = log->begin(2);
    batch->append(content(2000, filled(1)));
    const auto second = batch->append(content(2001, filled(2)));
    (void)batch->flushed().leave();
    region_.store_word(second.offset - kBlockSize, 0xdead);  // a line of the first did not arrive
    batch->keep();  // the power went: nothing is taken back
  }
  EXPECT_TRUE(found().empty());
  const auto log = start();
  put(*log, content(2005, filled(5)));
  EXPECT_EQ(found(), (std::map<uint64_t, Block>{{2005, filled(5)}}));
}

// The new entry lies over the base of an entry in another segment.
TEST_F(IntentLogTest, WhatARecoveryFoundDoesNotCountAfterTheStart) {
  {
    const auto log = start();
    const Block old = filled(1), fresh = filled(2);
    const auto base = put(*log, content(2000, old));
    const auto first = log->begin(1);  // the segment of the base
    IntentLog::Content delta = content(2001, fresh);
    delta.base = base;
    delta.base_bytes = old;
    EXPECT_NE(put(*log, delta).offset / kRingSize, base.offset / kRingSize);
    EXPECT_EQ(log->counts().delta_entries, 1);
  }
  put(*start(), content(2002, filled(3)));
  ASSERT_TRUE(IntentLog::open(region_, geometry_).ok());
  EXPECT_EQ(found(), (std::map<uint64_t, Block>{{2002, filled(3)}}));
}

TEST_F(IntentLogTest, EveryCutLeavesWhatWasKept) {
  const auto log = start();
  region_.start_recording();
  std::vector<std::map<uint64_t, Block>> states{{}};  // at each mark
  std::map<uint64_t, Block> now;
  const auto mark = [&] {
    states.push_back(now);
    region_.mark();
  };
  const auto keep = [&](uint64_t block, int value, uint64_t lines) {
    put(*log, content(block, filled(value, lines)));
    now[block] = filled(value, lines);
    mark();
  };
  keep(2000, 1, 2);
  keep(2001, 2, 1);
  put(*log, content(2002, filled(3, 1)), false);
  mark();
  const size_t taken_back = states.size() - 1;  // marks
  keep(2003, 4, 2);
  log->expire(log->cut());
  now.clear();
  mark();
  keep(2004, 5, 1);

  // Compares with the state promised before the cut and with the one under way, with the batch that
  // is taken back.
  const auto is_right = [&](const std::map<uint64_t, Block>& found, size_t marks) {
    const auto& promised = states[marks];
    const auto& next = states[std::min(marks + 1, states.size() - 1)];
    const auto has = [](const auto& state, const auto& entry) {
      return state.contains(entry.first) && state.at(entry.first) == entry.second;
    };
    return std::ranges::all_of(
               promised,
               [&](const auto& each) { return has(found, each) || !next.contains(each.first); }) &&
           std::ranges::all_of(found, [&](const auto& each) {
             return has(promised, each) || has(next, each) ||
                    (each.first == 2002 && marks < taken_back);
           });
  };
  const uint64_t images = pmem::each_crash_image(
      region_.initial(), region_.events(), {}, [&](const pmem::CrashImage& image) {
        pmem::ScratchRegion crashed(image.words);
        EXPECT_TRUE(IntentLog::open(crashed, geometry_).ok()) << image.description();
        EXPECT_TRUE(is_right(found_in(crashed), image.marks)) << image.description();
        return !HasFailure();
      });
  EXPECT_GT(images, 100);
}

// A log with such a word could give out no sequence above it.
TEST_F(IntentLogTest, AnImpossibleExpiredWordIsDamage) {
  for (const uint64_t line : {0U, 1U}) {
    const uint64_t through = ~uint64_t{0} - line;
    const uint64_t at = geometry_.intent_offset(0) + line * kLineSize;
    const uint32_t crc =
        crc32c(std::as_bytes(std::span(&through, 1)), geometry_.super().journal_seed);
    region_.store_word(at, through);
    region_.store_word(at + kWordSize, crc | uint64_t{1} << 32);
  }
  EXPECT_EQ(IntentLog::open(region_, geometry_).error().code, EIO);
  const auto log = IntentLog::salvage(region_, geometry_).value();
  EXPECT_TRUE(log->damage().expired_word);
  log->reset();
  put(*start(), content(2000, filled(1)));
  EXPECT_EQ(found(), (std::map<uint64_t, Block>{{2000, filled(1)}}));
}

TEST_F(IntentLogTest, EveryCutOfAResetLeavesADamagedLogOrSomeOfItsEntries) {
  const auto log = start();
  put(*log, content(2000, filled(1)));
  put(*log, content(2001, filled(2)));
  for (const uint64_t line : {0U, 1U})
    region_.store_word(geometry_.intent_offset(0) + line * kLineSize + kWordSize, 77);
  region_.start_recording();
  IntentLog::salvage(region_, geometry_).value()->reset();
  region_.mark();
  int damaged = 0, whole = 0;
  pmem::ExploreOptions explore;
  explore.exhaustive_up_to = 16;
  explore.samples = 16;
  pmem::each_crash_image(region_.initial(), region_.events(), explore, [&](const auto& image) {
    pmem::ScratchRegion cut(image.words);
    const auto opened = IntentLog::open(cut, geometry_);
    EXPECT_TRUE(opened.ok() || image.marks == 0) << image.description();
    if (opened.ok()) {
      EXPECT_EQ((*opened)->entries_found(), 0U) << image.description();
    }
    ++(opened.ok() ? whole : damaged);
    return !HasFailure();
  });
  EXPECT_GT(damaged, 0);
  EXPECT_GT(whole, 0);
}

TEST_F(IntentLogTest, DamageNeverShowsWhatWasNotWritten) {
  const auto log = start();
  for (int i = 1; i <= 20; ++i)
    put(*log,
        content(2000 + static_cast<uint64_t>(i), filled(i, 1 + static_cast<uint64_t>(i) % 4)));
  const std::map<uint64_t, Block> whole = found();
  const uint64_t segment = geometry_.intent_offset(0);
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    const uint64_t at = segment + random() % (4096 / kWordSize) * kWordSize;
    const uint64_t word = region_.load(at);
    region_.store_word(at, random() % 3 == 0 ? random() : word ^ 1ULL << random() % 64);
    for (const auto& [block, bytes] : found()) {
      ASSERT_TRUE(whole.contains(block)) << block;
      ASSERT_EQ(bytes, whole.at(block)) << block;
    }
    region_.store_word(at, word);
  }
  EXPECT_EQ(found(), whole);
}

}  // namespace
}  // namespace streamfs::meta::intent_log_test
