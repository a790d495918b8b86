// A snapshot of a log that follows data counts once the data that its pages show is durable.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

#include "base/types.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/metadata_log.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"
#include "tests/unit/meta/log_groups_rig.h"
#include "tests/unit/meta/metadata_log_rig.h"

namespace streamfs::meta {
namespace {

TEST_F(LogGroups, ASnapshotBringsDataHomeAfterItsPagesAndBeforeItsGroup) {
  change(0, 5);
  on_first_page = [&] { change(0, 77); };
  uint64_t at_home = 0;
  on_bring_home = [&] {
    EXPECT_EQ(region_->load(object(0) + 2 * kWordSize), 77U);
    at_home = journal_->last().value;
    change(0, 78);  // its data is not brought home, so it is not shipped
  };
  const uint64_t generation = headers().newest.generation;
  uint64_t headers_written = 0;
  on_header = [&] {
    if (headers_written++ == 0) return;  // the one that clears it
    ForgetfulDevice cut = device_;
    cut.cut_power();
    EXPECT_EQ(value_in(restored(cut)), 77U) << "the group is durable before the header";
  };
  note_writes();
  ASSERT_TRUE(log_->snapshot().ok());
  EXPECT_EQ(events(), "hpbch");
  EXPECT_EQ(headers_written, 2U);
  EXPECT_EQ(headers().newest.generation, generation + 1);
  EXPECT_LE(log_->durable().value, at_home);
  EXPECT_EQ(chunks_after(headers().newest).back().last_sequence, at_home);
}

TEST_F(LogGroups, ASnapshotThatCannotBringDataHomeDoesNotCount) {
  change(0, 5);
  bring_home();
  fsync();
  change(0, 6);
  const uint64_t generation = headers().newest.generation;
  failing_calls = {0};
  note_writes();
  EXPECT_EQ(log_->snapshot().error().code, EAGAIN);
  EXPECT_EQ(events(), "hpb");
  EXPECT_EQ(headers().newest.generation, generation);
  EXPECT_EQ(restored_value(), 5U);
  bring_home();
  fsync();
  EXPECT_EQ(restored_value(), 6U);
  change(0, 7);
  ASSERT_TRUE(log_->snapshot().ok());
  EXPECT_EQ(headers().newest.generation, generation + 1);
  EXPECT_EQ(restored_value(), 7U);
}

TEST_F(LogGroups, AShipWhoseSnapshotFailsIsTriedAgain) {
  change_many(kChangesOfAChunk * 5 / 2);
  bring_home();
  failing_calls = {0};
  EXPECT_EQ(log_->ship().error().code, EAGAIN);
  EXPECT_EQ(restored_value(), 12U);
  fsync();
  EXPECT_EQ(restored_value(), value_);
  EXPECT_EQ(log_->durable(), journal_->last());
}

TEST_F(LogGroups, ALogBeginsOnceItsDataIsHome) {
  for (const uint64_t failing : {uint64_t{0}, uint64_t{1}}) {  // each of the two snapshots
    Superblock super = geometry_.super();
    ++super.attachments;
    ASSERT_TRUE(store_superblock(*region_, super).ok());
    geometry_ = *Geometry::from(super);
    log_.reset();
    ASSERT_TRUE(recover_journal(*region_, geometry_).ok());
    follow(0);
    const uint64_t durable = restored_value();
    change_many(1);
    calls_ = 0;
    failing_calls = {failing};
    EXPECT_EQ(log_->ship().error().code, EAGAIN);
    EXPECT_FALSE(log_->begun());
    EXPECT_EQ(restored_value(), failing == 0 ? durable : value_);
    change_many(1);
    fsync();
    EXPECT_TRUE(log_->begun());
    EXPECT_EQ(restored_value(), value_);
    destroy_area(headers().newest.generation);
    EXPECT_EQ(restored_value(), value_);
    ASSERT_TRUE(log_->renew().ok());
  }
}

// A chunk that would cross the end of the ring begins at the ring's start, which takes room.
TEST_F(LogGroups, AGroupIsBegunOnlyIfItFitsWithTheEndOfTheRing) {
  const auto events_at = [this](uint64_t head) {
    while (chunks_after(headers().newest).size() + headers().newest.first_block != head) {
      change_many(1);
      bring_home();
      fsync();
    }
    EXPECT_TRUE(log_->renew().ok());
    EXPECT_EQ(headers().newest.first_block, head);
    change_many(kChangesOfAChunk * 15 / 4);
    note_writes();
    EXPECT_TRUE(log_->snapshot().ok());
    EXPECT_EQ(restored_value(), value_);
    return events();
  };
  EXPECT_EQ(events_at(20), "hpbch");
  ASSERT_TRUE(log_->renew().ok());
  EXPECT_EQ(events_at(label_.log_blocks - 20), "hpbch");
  ASSERT_TRUE(log_->renew().ok());
  EXPECT_EQ(events_at(label_.log_blocks - 100), "hpbBhphph");
}

// The group does not fit: none of it is written, and commits wait for both snapshots.
TEST_F(LogGroups, CommitsThatOutrunTheLogWaitUntilTheirDataIsHome) {
  on_first_page = [&] { change_many(120'000); };
  note_writes();
  on_bring_home = [&] { EXPECT_EQ(log_->durable().value, 1U) << "no header counts yet"; };
  ASSERT_TRUE(log_->snapshot().ok());
  EXPECT_EQ(events(), "hpbBhphph");
  EXPECT_EQ(log_->durable(), journal_->last());
  for (const uint64_t generation : {uint64_t{0}, uint64_t{1}}) {
    const ForgetfulDevice whole = device_;
    destroy_area(generation);
    EXPECT_EQ(restored_value(), value_);
    device_ = whole;
  }
}

TEST_F(LogGroups, CommitsThatOutrunTheLogWhoseDataCannotComeHomeAreTriedAgain) {
  on_first_page = [&] { change_many(120'000); };
  failing_calls = {1};
  note_writes();
  EXPECT_EQ(log_->snapshot().error().code, EAGAIN);
  EXPECT_EQ(events(), "hpbB");
  EXPECT_EQ(restored_value(), 12U);
  ASSERT_TRUE(log_->snapshot().ok());
  EXPECT_EQ(restored_value(), value_);
}

}  // namespace
}  // namespace streamfs::meta
