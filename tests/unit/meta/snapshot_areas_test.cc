// Either of the two snapshot areas alone brings back everything that was made durable.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/types.h"
#include "fuse-fs/meta/label.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/snapshot.h"
#include "fuse-fs/meta/snapshot_choice.h"
#include "pmem/region.h"
#include "tests/unit/meta/metadata_log_rig.h"

namespace streamfs::meta {
namespace {

class SnapshotAreas : public MetadataLogTest {
 protected:
  // A restore's error, the second word of object 0, and the message about damaged snapshots.
  struct Found {
    int error = 0;
    uint64_t value = 0;
    std::string damage;
  };
  Found restore() {
    const auto target = pmem::make_memory_region(kMetaSize, pmem::MetaClass::kVolatile);
    const auto done = restore_from_log(*target, label_, device_);
    if (!done.ok()) return {done.error().code, 0, done.error().message()};
    return {0, target->load(object(0) + 2 * kWordSize), done->damage};
  }
  // With each area destroyed in turn.
  void expect_from_either(uint64_t value) {
    for (const uint64_t generation : {uint64_t{0}, uint64_t{1}}) {
      const ForgetfulDevice whole = device_;
      destroy_area(generation);
      const Found found = restore();
      EXPECT_EQ(found.error, 0) << found.damage;
      EXPECT_EQ(found.value, value) << "without area " << generation;
      EXPECT_NE(found.damage, "") << "a restore says that an area is damaged";
      device_ = whole;
    }
  }
  void change_durably(uint64_t value) {
    change(0, value);
    fsync();
  }
  bool header_is_over_whole_pages(uint64_t generation) {
    const SnapshotHeaders both = headers();
    for (const SnapshotHeader& header : {both.newest, both.older}) {
      if (header.generation == 0 || header.generation % 2 != generation % 2) continue;
      if (!verify_snapshot(geometry_, label_, header, device_).ok()) return false;
    }
    return true;
  }
};

TEST_F(SnapshotAreas, EitherIsEnoughAfterTheLogBegan) {
  change_durably(1);
  expect_from_either(1);
}

TEST_F(SnapshotAreas, EitherIsEnoughAfterEverySnapshot) {
  for (uint64_t value = 1; value < 6; ++value) {
    change_durably(10 * value);
    ASSERT_TRUE(log_->snapshot().ok());
    change_durably(10 * value + 1);
    expect_from_either(10 * value + 1);
  }
}

TEST_F(SnapshotAreas, EitherIsEnoughInEveryTurnOfTheRing) {
  for (uint64_t turn = 1; turn <= 3 * label_.log_blocks; ++turn) {
    change_durably(turn);
    if (turn % 397 == 0) expect_from_either(turn);
  }
}

TEST_F(SnapshotAreas, EitherIsEnoughAfterCommitsOutranTheLog) {
  create(0, 10);
  fsync();
  device_.on_write = [&] {
    for (uint64_t i = 1; i <= 120'000; ++i) change(0, i);
  };
  ASSERT_TRUE(log_->snapshot().ok());
  ASSERT_FALSE(device_.on_write);
  expect_from_either(120'000);
  change_durably(7);
  expect_from_either(7);
}

// Records that a snapshot ships by itself must not come before records that are already waiting.
TEST_F(SnapshotAreas, ChunksAreInTheOrderOfSequencesAcrossASnapshot) {
  create(0, 10);
  fsync();
  for (int round = 0; round < 4; ++round) {
    const uint64_t before = headers().newest.generation;
    device_.on_write_to = [&](BlockNo at) {  // commits while the snapshot's pages are written
      if (at.value - label_.log_first_block < label_.log_blocks) return;  // not the log's chunks
      change(0, journal_->last().value);
    };
    for (uint64_t i = 0; i < 40'000; ++i) change(0, i);
    fsync();
    device_.on_write_to = {};
    ASSERT_GT(headers().newest.generation, before) << "no snapshot between two chunks";
    change_durably(1'000'000 + static_cast<uint64_t>(round));
    const uint64_t newest = region_->load(object(0) + 2 * kWordSize);
    expect_from_either(newest);
  }
}

TEST_F(SnapshotAreas, ALogThatGoesOnKeepsBoth) {
  change_durably(1);
  for (uint64_t turn = 2; turn <= label_.log_blocks; ++turn) {
    change_durably(turn);
    if (turn % 251 != 0) continue;
    attach_again(log_->end());
    ASSERT_NE(log_->end(), 0U) << "the log goes on";
    change_durably(turn);
    expect_from_either(turn);
  }
}

// A log that was written by a program that knew one snapshot only.
TEST_F(SnapshotAreas, ALogWithOneSnapshotBeginsAnew) {
  change_durably(1);
  const uint64_t end = log_->end();
  destroy_area(headers().older.generation);
  attach_again(end);
  EXPECT_EQ(log_->end(), 0U);
  change_durably(2);
  expect_from_either(2);
}

TEST_F(SnapshotAreas, DamagedPagesOfTheNewestSendTheRestoreToTheOther) {
  change_durably(1);
  ASSERT_TRUE(log_->snapshot().ok());
  change_durably(2);
  const uint64_t newest = headers().newest.generation;
  damage_index(newest);
  const Found found = restore();
  EXPECT_EQ(found.error, 0);
  EXPECT_EQ(found.value, 2U);
  EXPECT_NE(found.damage.find("snapshot " + std::to_string(newest)), std::string::npos)
      << found.damage;
}

// The mount after such a restore overwrites the damaged snapshot, not the only whole one.
TEST_F(SnapshotAreas, TheWholeOneStaysUntilTheDamagedOneIsReplaced) {
  change_durably(1);
  ASSERT_TRUE(log_->snapshot().ok());
  change_durably(2);
  const uint64_t whole = headers().older.generation;
  damage_index(headers().newest.generation);
  lose_meta();
  const uint64_t first = snapshot_area(label_, whole).front().first;
  bool is_replaced = false;
  device_.on_write_to = [&](BlockNo at) {
    if (at.value != first || is_replaced) return;
    is_replaced = true;
    const SnapshotHeader newest = headers().newest;
    EXPECT_NE(newest.generation % 2, whole % 2);
    EXPECT_TRUE(verify_snapshot(geometry_, label_, newest, device_).ok());
  };
  start();
  device_.on_write_to = {};
  EXPECT_TRUE(is_replaced);
  change_durably(3);
  expect_from_either(3);
}

TEST_F(SnapshotAreas, AnOlderOneThatDoesNotLeadToTheNewestIsRefused) {
  change_durably(1);
  ASSERT_TRUE(log_->snapshot().ok());
  change_durably(2);
  // The chunks after the older snapshot are gone.
  const uint64_t first = label_.log_first_block;
  const std::vector<std::byte> noise(label_.log_blocks * kBlockSize, std::byte{0x5a});
  ASSERT_TRUE(device_.write(BlockNo{first}, noise).ok());
  damage_index(headers().newest.generation);
  EXPECT_EQ(restore().error, EIO);
  EXPECT_NE(restore().damage.find("does not reach"), std::string::npos) << restore().damage;
}

// A program that kept one snapshot wrote no log that the older one could begin with.
TEST_F(SnapshotAreas, TheOlderOneOfALogThatWasNotKeptForItIsRefused) {
  change_durably(1);
  const uint64_t newest = headers().newest.generation;
  for (const SnapshotHeader& header : {headers().newest, headers().older}) {
    SnapshotHeader changed = header;
    changed.first_chunk &= ~kEitherSnapshot;
    changed.checksum = 0;
    changed.checksum = crc32c(std::as_bytes(std::span(&changed, 1)));
    std::vector<std::byte> block(kBlockSize);
    std::memcpy(block.data(), &changed, sizeof changed);
    const BlockNo at{snapshot_area(label_, header.generation).front().first};
    ASSERT_TRUE(device_.write(at, block).ok());
  }
  EXPECT_EQ(restore().error, 0) << "with the newest";
  damage_index(newest);
  EXPECT_EQ(restore().error, EIO);
}

// The chunk may have arrived, and a restore would go on with it.
TEST_F(SnapshotAreas, AfterAChunkThatFailedNothingMoreIsShipped) {
  change_durably(1);
  change(0, 2);
  device_.writes_left = 0;
  EXPECT_FALSE(log_->ship().ok());
  device_.writes_left = std::numeric_limits<uint64_t>::max();
  uint64_t writes = 0;
  device_.on_write_to = [&](BlockNo) { ++writes; };
  change(0, 3);
  EXPECT_FALSE(log_->ship().ok());
  EXPECT_FALSE(log_->ship_to_settle().ok());
  device_.on_write_to = {};
  EXPECT_EQ(writes, 0U);
  EXPECT_EQ(restore().value, 1U);
}

TEST_F(SnapshotAreas, BothDestroyedIsSaid) {
  change_durably(1);
  destroy_area(0);
  destroy_area(1);
  EXPECT_EQ(restore().error, ENODATA);
}

// A write that fails anywhere in a snapshot leaves no header over pages that it changed, and the
// next snapshot succeeds.
TEST_F(SnapshotAreas, NoHeaderIsOverChangedPagesAfterAWriteThatFailed) {
  create(0, 10);
  ASSERT_TRUE(log_->renew().ok());  // both areas have its page
  for (uint64_t number = 0;; ++number) {
    change_durably(number);
    device_.writes_left = number;
    const bool failed = !log_->snapshot().ok();
    device_.writes_left = std::numeric_limits<uint64_t>::max();
    for (const uint64_t generation : {uint64_t{0}, uint64_t{1}})
      EXPECT_TRUE(header_is_over_whole_pages(generation)) << "write " << number;
    EXPECT_EQ(restore().value, number);
    if (!failed) break;
    ASSERT_LT(number, 100U);
  }
}

// A block that a settled condition named may be overwritten: no restore looks at it again, not even
// one from the older snapshot.
TEST_F(SnapshotAreas, ASnapshotAloneSettlesNothing) {
  create(0, 10);
  fsync();
  const std::vector<std::byte> content(kBlockSize, std::byte{1});
  const BlockNo block{kDataBlocks - 1};
  Transaction tx(*region_);
  tx.patch(object(0) + 2 * kWordSize, 5);
  tx.condition({block, crc32c(content), kBlockSize});
  ASSERT_TRUE(journal_->commit(tx).ok());
  ASSERT_TRUE(device_.write(block, content).ok());
  ASSERT_TRUE(log_->snapshot().ok());
  EXPECT_TRUE(log_->conditions().any_up_to(journal_->last())) << "no chunk says that it is settled";
  for (int round = 0; round < 2; ++round) {
    const auto shipped = log_->ship_to_settle();
    ASSERT_TRUE(shipped.ok());
    ASSERT_TRUE(device_.flush().ok());
    log_->made_durable(*shipped);
  }
  ASSERT_FALSE(log_->conditions().any_up_to(journal_->last()));
  ASSERT_TRUE(device_.write(block, std::vector<std::byte>(kBlockSize)).ok());
  ASSERT_TRUE(device_.flush().ok());
  expect_from_either(5);
}

}  // namespace
}  // namespace streamfs::meta
