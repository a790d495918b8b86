// The metadata log's promise: META gone, everything shipped before the last device flush comes
// back.
#include "fuse-fs/meta/metadata_log.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/snapshot.h"
#include "pmem/region.h"
#include "tests/unit/meta/metadata_log_rig.h"
#include "tests/unit/pmem/borrowed_region.h"

namespace streamfs::meta {
namespace {

TEST_F(MetadataLogTest, GoesOnWhereItEndedAndBeginsWhereNothingSaysSo) {
  create(0, 10);
  fsync();
  const uint64_t end = log_->end();
  attach_again(end);
  EXPECT_EQ(log_->end(), end);
  EXPECT_EQ(log_->bytes_written(), 0U);
  create(1, 20);
  fsync();
  EXPECT_EQ(log_->bytes_written(), kBlockSize);
  ASSERT_TRUE(log_->snapshot().ok());
  for (const uint64_t wrong : {uint64_t{0}, end}) {  // of the snapshot before
    attach_again(wrong);
    EXPECT_EQ(log_->end(), 0U);
    create(2, 30 + wrong);
    fsync();
    EXPECT_GT(log_->bytes_written(), 2 * kBlockSize) << "a snapshot";
  }
  lose_meta();
  EXPECT_EQ(word(0, 0), 10U);
  EXPECT_EQ(word(1, 0), 20U);
  EXPECT_EQ(word(2, 0), 30 + end);
}

TEST_F(MetadataLogTest, WhatWasShippedAndFlushedComesBack) {
  create(0, 10);
  change(0, 99);
  fsync();
  create(1, 20);
  lose_meta();
  EXPECT_EQ(word(0, 0), 10U);
  EXPECT_EQ(word(0, 1), 11U);
  EXPECT_EQ(word(0, 2), 99U);
  EXPECT_EQ(word(1, 0), 0U) << "what was not shipped must not appear in part";
}

// Pages may have caught it, and others not: nobody begins with them before it is in the log.
TEST_F(MetadataLogTest, WhatIsCommittedDuringASnapshotIsInTheLogBeforeItCounts) {
  create(0, 10);
  fsync();
  device_.on_write = [&] { change(0, 77); };
  ASSERT_TRUE(log_->snapshot().ok());
  ASSERT_FALSE(device_.on_write);
  lose_meta();
  EXPECT_EQ(word(0, 2), 77U);
}

TEST_F(MetadataLogTest, MoreThanTheLogHoldsIsMadeToWaitForTheSnapshot) {
  constexpr uint64_t kChanges = 120'000;
  create(0, 10);
  fsync();
  const uint64_t before = log_->bytes_written();
  device_.on_write = [&] {
    for (uint64_t i = 1; i <= kChanges; ++i) change(0, i);
  };
  ASSERT_TRUE(log_->snapshot().ok());
  EXPECT_GT(log_->bytes_written() - before, label_.log_blocks * kBlockSize / 2);
  fsync();
  lose_meta();
  EXPECT_EQ(word(0, 2), kChanges);
}

// The log discards no block that a restore from the older snapshot reads, even after the ring has
// wrapped past the discarded blocks.
TEST_F(MetadataLogTest, DiscardsNoBlockThatTheOlderSnapshotNeeds) {
  for (uint64_t i = 0; i < 4000; ++i) create(i, 10);
  fsync();
  ASSERT_TRUE(log_->snapshot().ok());
  device_.on_write = [&] {
    for (uint64_t i = 1; i <= 90'000; ++i) change(0, i);
  };
  ASSERT_TRUE(log_->snapshot().ok());  // most of the ring before its end
  ASSERT_TRUE(log_->snapshot().ok());
  const uint64_t discarded = device_.discarded;
  uint64_t turn = 0;
  for (; device_.discarded == discarded && turn < label_.log_blocks; ++turn) {
    change(0, turn);
    fsync();
  }
  ASSERT_GT(device_.discarded, discarded);
  destroy_area(headers().newest.generation);
  ASSERT_NO_FATAL_FAILURE(lose_meta());
  EXPECT_EQ(word(0, 2), turn - 1);
}

TEST_F(MetadataLogTest, DiscardsWhatIsBeyondTwoSnapshots) {
  create(0, 10);
  fsync();
  const uint64_t turns = 4 * label_.log_blocks, before = log_->bytes_written();
  for (uint64_t turn = 0; turn < turns; ++turn) {
    change(0, turn);
    fsync();
  }
  EXPECT_GT(device_.discarded, turns * 9 / 10);  // a block a turn
  EXPECT_LT(log_->bytes_written() - before, turns * kBlockSize * 8 / 5);
  lose_meta();
  EXPECT_EQ(word(0, 2), turns - 1);
}

TEST_F(MetadataLogTest, AnEmptyFilesystemComesBack) {
  lose_meta();
}

TEST_F(MetadataLogTest, ACleanCloseKeepsEverything) {
  create(0, 10);
  ASSERT_TRUE(log_->snapshot().ok());
  lose_meta();
  EXPECT_EQ(word(0, 3), 13U);
}

TEST_F(MetadataLogTest, LosingMetaTwiceKeepsBothRuns) {
  create(0, 10);
  fsync();
  lose_meta();
  start();
  change(0, 5);
  create(1, 20);
  fsync();
  lose_meta();
  EXPECT_EQ(word(0, 2), 5U);
  EXPECT_EQ(word(1, 0), 20U);
}

TEST_F(MetadataLogTest, ALogThatWrapsManyTimesKeepsTheNewest) {
  std::mt19937_64 random(3);
  std::map<uint64_t, uint64_t> expected;
  for (uint64_t i = 0; i < 64; ++i) create(i, i + 1);
  const uint64_t turns = 4 * label_.log_blocks;  // a block a turn at least
  for (uint64_t turn = 0; turn < turns; ++turn) {
    const uint64_t i = random() % 64;
    change(i, turn);
    expected[i] = turn;
    fsync();
  }
  change(0, 1);  // not shipped
  lose_meta();
  for (const auto& [i, value] : expected) EXPECT_EQ(word(i, 2), value) << i;
}

TEST_F(MetadataLogTest, DurableFollowsTheFlushNotTheShipping) {
  create(0, 10);
  const TxId last = journal_->last();
  const auto shipped = log_->ship();
  ASSERT_TRUE(shipped.ok());
  EXPECT_LT(log_->durable(), last);
  log_->made_durable(*shipped);
  EXPECT_GE(log_->durable(), last);
}

TEST_F(MetadataLogTest, WhatSaysASequenceThatNoJournalReachesIsDamaged) {
  const auto error_with = [this](uint64_t watermark) {
    region_->store_word(kWatermarkOffset, watermark);
    device_ = ForgetfulDevice(kDataBlocks);
    start();
    create(0, 10);
    fsync();
    log_.reset();
    const auto restored = restore_from_log(*region_, label_, device_);
    return restored.ok() ? 0 : restored.error().code;
  };
  EXPECT_EQ(error_with(kMaxSequence - 1), 0);
  EXPECT_EQ(error_with(kMaxSequence), EIO);          // the record after the snapshot
  EXPECT_EQ(error_with(kMaxSequence + 1), ENODATA);  // the snapshot
}

TEST_F(MetadataLogTest, ADeviceWithoutASnapshotIsRefused) {
  ForgetfulDevice empty(kDataBlocks);
  const auto restored = restore_from_log(*region_, label_, empty);
  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().code, ENODATA);
}

// Its page was passed by already: the snapshot may not claim to have it.
TEST_F(MetadataLogTest, WhatIsCommittedWhileASnapshotLooksForPagesIsNotLost) {
  constexpr uint64_t kLow = 64 * 10, kHigh = 64 * 20;  // objects, in pages of their own
  const auto words = std::move(region_);
  auto borrowed = std::make_unique<pmem::BorrowedRegion>(*words);
  pmem::BorrowedRegion& region = *borrowed;
  region_ = std::move(borrowed);
  start();
  create(kHigh, 100);
  bool committed = false;
  region.on_each_load([&](uint64_t offset) {
    if (offset < object(kHigh) || offset >= object(kHigh) + kUnitSize) return;
    if (!std::exchange(committed, true)) create(kLow, 200);
  });
  ASSERT_TRUE(log_->snapshot().ok());
  ASSERT_TRUE(committed);
  lose_meta();
  EXPECT_EQ(word(kHigh, 0), 100U);
  EXPECT_EQ(word(kLow, 0), 200U);
  EXPECT_EQ(word(kLow, 3), 203U);
}

}  // namespace
}  // namespace streamfs::meta
