// The metadata log's promise: META gone, everything shipped before the last device flush comes
// back.
#include "fuse-fs/meta/metadata_log.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/record.h"
#include "fuse-fs/meta/snapshot.h"
#include "pmem/region.h"
#include "tests/unit/pmem/borrowed_region.h"

namespace streamfs::meta {
namespace {

// A data device that loses what was not flushed.
class ForgetfulDevice final : public LogDevice {
 public:
  explicit ForgetfulDevice(uint64_t blocks) : durable_(blocks * kBlockSize) {}
  std::function<void()> on_write;
  Result<void> write(BlockNo first, ConstBytes bytes) override {
    if (on_write) std::exchange(on_write, {})();
    for (uint64_t at = 0; at < bytes.size(); at += kBlockSize) {
      const auto block = bytes.subspan(at, kBlockSize);
      unflushed_[first.value + at / kBlockSize].assign(block.begin(), block.end());
    }
    return {};
  }
  Result<void> read(BlockNo first, Bytes bytes) override {
    for (uint64_t at = 0; at < bytes.size(); at += kBlockSize) {
      const uint64_t block = first.value + at / kBlockSize;
      const auto found = unflushed_.find(block);
      const std::byte* from =
          found != unflushed_.end() ? found->second.data() : durable_.data() + block * kBlockSize;
      std::memcpy(bytes.data() + at, from, kBlockSize);
    }
    return {};
  }
  Result<void> flush() override {
    for (const auto& [block, bytes] : unflushed_) {
      std::memcpy(durable_.data() + block * kBlockSize, bytes.data(), kBlockSize);
    }
    unflushed_.clear();
    return {};
  }
  void forget(BlockNo first, uint64_t count) override {
    forgotten += count;
    std::memset(&durable_[first.value * kBlockSize], 0xa5, count * kBlockSize);
  }
  void cut_power() { unflushed_.clear(); }
  uint64_t forgotten = 0;

 private:
  std::vector<std::byte> durable_;
  std::map<uint64_t, std::vector<std::byte>> unflushed_;
};

class MetadataLogTest : public testing::Test {
 protected:
  static constexpr uint64_t kMetaSize = 2 * 1024 * 1024;
  static constexpr uint64_t kDataBlocks = 16384;

  void SetUp() override {
    FormatOptions options;
    options.data_blocks = kDataBlocks;
    options.meta_log = true;
    options.random_seed = 9;
    const auto super = plan_format(kMetaSize, pmem::MetaClass::kVolatile, options);
    ASSERT_TRUE(super.ok()) << super.error().message();
    ASSERT_TRUE(format(*region_, *super, Timestamp{1, 0}).ok());
    geometry_ = *Geometry::from(*load_superblock(*region_, false));
    label_ = make_label(geometry_.super()).label;
    start();
  }

  void start() {
    log_.reset();
    journal_ = std::make_unique<Journal>(*region_, geometry_);
    auto log = MetadataLog::start(*region_, geometry_, *journal_, device_, label_);
    ASSERT_TRUE(log.ok()) << log.error().message();
    log_ = std::move(*log);
  }

  void attach_again(uint64_t end) {
    log_.reset();
    journal_ = std::make_unique<Journal>(*region_, geometry_);
    auto log = MetadataLog::attach(*region_, geometry_, *journal_, device_, label_, end);
    ASSERT_TRUE(log.ok()) << log.error().message();
    log_ = std::move(*log);
  }

  uint64_t object(uint64_t i) const { return geometry_.unit_offset(4) + i * kCellSize; }

  void create(uint64_t i, uint64_t tag) {
    Transaction tx(*region_);
    const std::array<uint64_t, 3> body{tag + 1, tag + 2, tag + 3};
    tx.body(object(i) + kWordSize, body);
    tx.patch(object(i), tag);
    ASSERT_TRUE(journal_->commit(tx).ok());
  }
  void change(uint64_t i, uint64_t value) {
    Transaction tx(*region_);
    tx.patch(object(i) + 2 * kWordSize, value);
    ASSERT_TRUE(journal_->commit(tx).ok());
  }
  void fsync() {
    const auto shipped = log_->ship();
    ASSERT_TRUE(shipped.ok());
    ASSERT_TRUE(device_.flush().ok());
    log_->made_durable(*shipped);
  }

  // Loses META and the power, restores, and starts again.
  void lose_meta() {
    log_.reset();
    journal_.reset();
    device_.cut_power();
    region_ = pmem::make_memory_region(kMetaSize, pmem::MetaClass::kVolatile);
    const auto restored = restore_from_log(*region_, label_, device_);
    ASSERT_TRUE(restored.ok()) << restored.error().message();
    const auto super = load_superblock(*region_, false);
    ASSERT_TRUE(super.ok());
    EXPECT_EQ(super->root_inode, geometry_.super().root_inode);
  }

  uint64_t word(uint64_t i, uint64_t w) const { return region_->load(object(i) + w * kWordSize); }

  std::unique_ptr<pmem::Region> region_ =
      pmem::make_memory_region(kMetaSize, pmem::MetaClass::kVolatile);
  ForgetfulDevice device_{kDataBlocks};
  Geometry geometry_;
  DataLabel label_{};
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<MetadataLog> log_;
};

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

// The snapshot before the newest can still be restored from, though the ring went round since what
// is forgotten was written.
TEST_F(MetadataLogTest, WhatIsForgottenIsNotWhatTheRingWasWrittenOverWith) {
  for (uint64_t i = 0; i < 4000; ++i) create(i, 10);
  fsync();
  ASSERT_TRUE(log_->snapshot().ok());
  device_.on_write = [&] {
    for (uint64_t i = 1; i <= 90'000; ++i) change(0, i);
  };
  ASSERT_TRUE(log_->snapshot().ok());  // most of the ring before its end
  ASSERT_TRUE(log_->snapshot().ok());
  const uint64_t forgotten = device_.forgotten;
  uint64_t turn = 0;
  for (; device_.forgotten == forgotten && turn < label_.log_blocks; ++turn) {
    change(0, turn);
    fsync();
  }
  ASSERT_GT(device_.forgotten, forgotten);
  const auto newest = newest_snapshot(label_, device_);
  ASSERT_TRUE(newest.ok());
  const std::vector<std::byte> zeroes(kBlockSize);
  const uint64_t at = snapshot_area(label_, newest->generation).front().first;
  ASSERT_TRUE(device_.write(BlockNo{at}, zeroes).ok());
  ASSERT_TRUE(device_.flush().ok());
  ASSERT_NO_FATAL_FAILURE(lose_meta());
  EXPECT_EQ(word(0, 2), turn - 1);
}

TEST_F(MetadataLogTest, WhatTheLogIsLongerThanTwoSnapshotsIsForgotten) {
  create(0, 10);
  fsync();
  const uint64_t turns = 4 * label_.log_blocks, before = log_->bytes_written();
  for (uint64_t turn = 0; turn < turns; ++turn) {
    change(0, turn);
    fsync();
  }
  EXPECT_GT(device_.forgotten, turns * 9 / 10);  // a block a turn
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
