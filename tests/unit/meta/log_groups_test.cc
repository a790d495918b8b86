// A log that follows data which is written later than its records: it ships only records whose data
// is durable, and all records of one ship() count together or not at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/types.h"
#include "base/wire/magic.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/log_format.h"
#include "fuse-fs/meta/log_reader.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/snapshot.h"
#include "pmem/region.h"
#include "tests/unit/meta/log_groups_rig.h"
#include "tests/unit/meta/metadata_log_rig.h"

namespace streamfs::meta {
namespace {

// ---- Groups

TEST_F(LogGroups, AGroupThatIsCutDoesNotCount) {
  make_snapshots_large();
  const std::vector<std::byte> before = restored(device_);
  change_many(kChangesOfAChunk * 3 / 2);
  create(70, 5);
  bring_home();
  uint64_t writes = 0;
  device_.on_write_to = [&](BlockNo at) {
    ASSERT_TRUE(is_in_log(at));
    EXPECT_TRUE(restored(device_) == before) << "before write " << writes;
    ++writes;
  };
  fsync();
  device_.on_write_to = {};
  EXPECT_EQ(writes, 2U) << "chunks";
  EXPECT_EQ(restored_value(), value_);
  lose_meta();
  EXPECT_EQ(word(70, 0), 5U);
}

TEST_F(LogGroups, AGroupWithATornChunkDoesNotCount) {
  make_snapshots_large();
  const std::vector<std::byte> before = restored(device_);
  change_many(kChangesOfAChunk * 3 / 2);
  bring_home();
  const std::vector<BlockNo> places = places_of_group();
  ASSERT_EQ(places.size(), 2U);
  for (const BlockNo place : places) {
    const ForgetfulDevice whole = device_;
    tear(BlockNo{place.value + 1});
    EXPECT_TRUE(restored(device_) == before) << "block " << place.value;
    device_ = whole;
  }
  EXPECT_EQ(restored_value(), value_);
}

TEST_F(LogGroups, ARestoreSaysThatItDroppedAGroup) {
  make_snapshots_large();
  const auto ended_early = [this] {
    const auto target = pmem::make_memory_region(kMetaSize, pmem::MetaClass::kVolatile);
    return restore_from_log(*target, label_, device_)->ended_early;
  };
  change_many(kChangesOfAChunk * 3 / 2);
  bring_home();
  const std::vector<BlockNo> places = places_of_group();
  EXPECT_FALSE(ended_early());
  tear(places.back());
  EXPECT_TRUE(ended_early());
}

// The group comes with a snapshot, because it is longer than the log between two snapshots.
TEST_F(LogGroups, AGroupThatASnapshotShipsCountsAsAWhole) {
  const std::vector<std::byte> before = restored(device_);
  change_many(kChangesOfAChunk * 5 / 2);
  bring_home();
  std::vector<bool> is_old;  // before each chunk
  bool is_past_group = false;
  device_.on_write_to = [&](BlockNo at) {
    const bool old = restored(device_) == before;
    EXPECT_TRUE(old || value_in(restored(device_)) == value_);
    if (is_in_log(at)) is_old.push_back(old);
    is_past_group |= !old;
  };
  fsync();
  device_.on_write_to = {};
  EXPECT_EQ(is_old, std::vector<bool>(3, true));
  EXPECT_TRUE(is_past_group) << "the snapshot's header comes after the group";
  EXPECT_EQ(restored_value(), value_);
}

TEST_F(LogGroups, NoSnapshotBeginsInsideAGroup) {
  make_snapshots_large();
  std::mt19937_64 random(5);
  std::vector<std::pair<uint64_t, uint64_t>> committed;  // sequence, value
  const auto value_at = [&](TxId last) {
    const auto end =
        std::ranges::upper_bound(committed, last.value, {}, &std::pair<uint64_t, uint64_t>::first);
    return end == committed.begin() ? 0 : std::prev(end)->second;
  };
  uint64_t snapshots = 0, long_groups = 0;
  for (int round = 0; round < 60; ++round) {
    const uint64_t times = std::vector<uint64_t>{1, 50, 3000, 3 * kChangesOfAChunk}[random() % 4];
    for (uint64_t i = 0; i < times; ++i) {
      change(0, ++value_);
      committed.emplace_back(journal_->last().value, value_);
    }
    log_->data_is_home(TxId{journal_->last().value - random() % times});
    const SnapshotHeader newest = headers().newest;
    fsync();
    const SnapshotHeaders now = headers();
    snapshots += now.newest.generation - newest.generation;
    const std::vector<LogChunk> chunks = chunks_after(now.older);
    const uint64_t behind = now.newest.first_chunk - now.older.first_chunk;
    ASSERT_LE(behind, chunks.size());
    EXPECT_FALSE(behind > 0 && chunks[behind - 1].group_goes_on) << "round " << round;
    EXPECT_FALSE(!chunks.empty() && chunks.back().group_goes_on) << "round " << round;
    for (const LogChunk& chunk : chunks) long_groups += chunk.group_goes_on ? 1 : 0;
    const uint64_t found = restored_value();
    EXPECT_EQ(found, value_at(log_->durable())) << "round " << round;
    destroy_area(now.newest.generation);
    EXPECT_EQ(restored_value(), found) << "round " << round;
    ASSERT_TRUE(log_->renew().ok());
  }
  EXPECT_GE(snapshots, 4U);
  EXPECT_GE(long_groups, 4U);
}

// The newest snapshot's group has records that its pages hold and records of commits meanwhile.
TEST_F(LogGroups, AnOlderSnapshotLeadsToTheNewestByWholeGroupsOnly) {
  change_many(100);
  on_first_page = [&] { change_many(kChangesOfAChunk * 3 / 2); };
  note_writes();
  ASSERT_TRUE(log_->snapshot().ok());
  EXPECT_EQ(events(), "hpbch");
  ASSERT_EQ(chunk_places_.size(), 2U);
  const SnapshotHeader newest = headers().newest;
  ASSERT_GE(chunks_after(newest).front().last_sequence, newest.sequence);
  damage_index(newest.generation);
  EXPECT_EQ(restored_value(), value_);
  tear(chunk_places_.back());
  const auto target = pmem::make_memory_region(kMetaSize, pmem::MetaClass::kVolatile);
  const auto refused = restore_from_log(*target, label_, device_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, EIO);
  EXPECT_NE(refused.error().message().find("does not reach"), std::string::npos);
}

TEST_F(LogGroups, AfterAChunkOfAGroupThatFailedNothingMoreIsWritten) {
  make_snapshots_large();
  const uint64_t before = restored_value();
  change_many(kChangesOfAChunk * 3 / 2);
  bring_home();
  device_.writes_left = 1;
  EXPECT_FALSE(log_->ship().ok());
  device_.writes_left = std::numeric_limits<uint64_t>::max();
  change_many(4 * kChangesOfAChunk);  // a snapshot is due
  bring_home();
  note_writes();
  EXPECT_FALSE(log_->ship().ok());
  EXPECT_EQ(events(), "");
  EXPECT_EQ(restored_value(), before);
}

TEST_F(LogGroups, ALogGoesOnWithGroupsAndWithout) {
  const auto go_on = [this](bool follows) {
    const uint64_t end = log_->end();
    ASSERT_NE(end, 0U);
    log_.reset();
    ASSERT_TRUE(recover_journal(*region_, geometry_).ok());
    if (follows) return follow(end);
    attach_again(end);
  };
  for (const bool follows : {false, true, false, true}) {
    go_on(follows);
    ASSERT_TRUE(log_->begun());
    change_many(100);
    bring_home();
    fsync();
    EXPECT_EQ(restored_value(), value_) << follows;
  }
}

// ---- Records whose data is yet to be written

TEST_F(LogGroups, OnlyRecordsWithDurableDataAreShipped) {
  const TxId durable = log_->durable();
  change(0, 5);
  fsync();
  EXPECT_EQ(log_->durable(), durable) << "no data is home";
  EXPECT_EQ(restored_value(), 12U);
  const TxId home = journal_->last();
  change(0, 6);
  log_->data_is_home(home);
  log_->data_is_home(TxId{home.value - 1});  // no effect
  const auto shipped = log_->ship();
  ASSERT_TRUE(shipped.ok());
  EXPECT_EQ(shipped->last, home);
  ASSERT_TRUE(device_.flush().ok());
  log_->made_durable(*shipped);
  EXPECT_EQ(log_->durable(), home);
  EXPECT_EQ(restored_value(), 5U);
  bring_home();
  fsync();
  EXPECT_EQ(log_->durable(), journal_->last());
  EXPECT_EQ(restored_value(), 6U);
  EXPECT_EQ(calls_, 0U) << "no snapshot";
}

TEST_F(LogGroups, SettlingShipsNoRecordWithoutItsData) {
  change(0, 5);
  bring_home();
  fsync();
  const TxId home = log_->durable();
  change(0, 6);
  const auto shipped = log_->ship_to_settle();
  ASSERT_TRUE(shipped.ok());
  EXPECT_EQ(shipped->last, home);
  EXPECT_EQ(shipped->settled, home);
  EXPECT_EQ(restored_value(), 5U);
}

// ---- The bit

TEST_F(MetadataLogTest, AChunkSaysNothingOfGroupsUnlessTheLogFollowsData) {
  for (uint64_t i = 0; i < 3 * kChangesOfAChunk; ++i) change(0, i);
  fsync();
  const SnapshotHeader newest = headers().newest;
  uint64_t chunks = 0;
  for (LogReader reader(label_, newest, device_);; ++chunks) {
    const auto chunk = reader.next().value();
    if (!chunk) break;
    EXPECT_FALSE(chunk->group_goes_on);
  }
  EXPECT_GE(chunks, 2U);
}

TEST_F(LogGroups, AChunkThatLeavesItsGroupUnfinishedDoesNotCount) {
  change(0, 5);
  bring_home();
  const std::vector<BlockNo> places = places_of_group();
  ASSERT_EQ(places.size(), 1U);
  for (const uint64_t last : {uint64_t{0}, journal_->last().value, ~uint64_t{0}}) {
    change_header(places[0], [&](LogChunkHeader& header) {
      header.conditions |= kGroupGoesOn;
      header.last_sequence = last;
    });
    EXPECT_EQ(restored_value(), 12U);
  }
}

TEST_F(LogGroups, AGroupWithoutAnEndDoesNotCount) {
  ASSERT_TRUE(log_->renew().ok());
  const SnapshotHeader newest = headers().newest;
  for (uint64_t i = 0; i < label_.log_blocks; ++i) {
    const uint64_t block = (newest.first_block + i) % label_.log_blocks;
    change_header(BlockNo{label_.log_first_block + block}, [&](LogChunkHeader& header) {
      header = {};
      header.magic = wire::kChunkMagic;
      header.number = newest.first_chunk + i;
      header.last_sequence = ~uint64_t{0};
      header.conditions = kGroupGoesOn;
      std::ranges::copy(label_.geometry.uuid, header.uuid);
      header.payload_checksum = crc32c({});
    });
  }
  EXPECT_EQ(chunks_after(newest).size(), label_.log_blocks);
  EXPECT_EQ(restored_value(), 12U);
}

TEST_F(LogGroups, AChunkWithMoreConditionsThanBytesIsNone) {
  change(0, 5);
  bring_home();
  const std::vector<BlockNo> places = places_of_group();
  for (const uint32_t conditions : {kGroupGoesOn | 1000, ~uint32_t{0}, kGroupGoesOn - 1}) {
    change_header(places[0], [&](LogChunkHeader& header) { header.conditions = conditions; });
    EXPECT_EQ(restored_value(), 12U);
  }
}

}  // namespace
}  // namespace streamfs::meta
