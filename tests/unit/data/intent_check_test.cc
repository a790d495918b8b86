// fsck of an intent log: what it says, what it writes to DATA, and what a damaged log loses.
#include "fuse-fs/pair/intent_check.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/geometry.h"
#include "fuse-fs/meta/intent_log.h"
#include "fuse-fs/meta/journal.h"
#include "fuse-fs/meta/layout.h"
#include "tests/unit/data/intent_rig.h"

namespace streamfs::data::intent_test {
namespace {

using pair::IntentRepair;

// A killed filesystem whose log has blocks that are not on DATA.
class IntentFsck {
 public:
  explicit IntentFsck(bool checksums = true) : rig(options(checksums)) {
    const InodeId first = rig.create("first"), id = rig.create("f");
    EXPECT_TRUE(rig.write(first, 0, blocks(1, 9)).ok());
    EXPECT_TRUE(rig.fs().sync().ok());
    for (const int value : {1, 2}) {  // the second entries of the blocks build on the first
      EXPECT_TRUE(rig.write(id, 0, blocks(3, value)).ok());
      EXPECT_TRUE(rig.fs().fsync(id, false).ok());
    }
    rig.keep_off();
  }
  static Rig::Options options(bool checksums) {
    Rig::Options options = Rig::with_intent_log();
    options.checksums = checksums;
    return options;
  }
  // Opens the pair as fsck does, calls `work`, and keeps META as it is then.
  template <typename Work>
  auto with_pair(const Work& work) {
    pair::OpenPair pair = rig.open_pair();
    const meta::Geometry geometry = meta::Geometry::from(pair.super).value();
    EXPECT_TRUE(meta::recover_journal(*pair.region, geometry).ok());
    auto result = work(pair, geometry);
    rig.put_back(std::move(pair.region));
    return result;
  }
  pair::IntentReport check(IntentRepair how) {
    return with_pair([&](pair::OpenPair& pair, const meta::Geometry&) {
      const auto report = pair::check_intent_log(pair, how);
      EXPECT_TRUE(report.ok()) << report.error().message();
      return *report;
    });
  }
  // The second write to DATA fails.
  pair::IntentReport check_with_a_failing_write(IntentRepair how) {
    blockdev::Faults faults;
    faults.fail_writes_after = 1;
    faults.failures = 1;
    rig.device().set_faults(faults);
    const pair::IntentReport report = check(how);
    rig.device().set_faults({});
    return report;
  }
  void damage(const std::function<void(pmem::Region&, const meta::Geometry&)>& how) {
    with_pair([&](pair::OpenPair& pair, const meta::Geometry& geometry) {
      how(*pair.region, geometry);
      return 0;
    });
  }
  void damage_expired_word() {
    damage([](pmem::Region& region, const meta::Geometry& geometry) {
      for (const uint64_t line : {0U, 1U})
        region.store_word(geometry.intent_offset(0) + line * kLineSize + kWordSize, 77);
    });
  }
  // The older slot counts then.
  void damage_newer_slot() {
    damage([](pmem::Region& region, const meta::Geometry& geometry) {
      const uint64_t slots = geometry.intent_offset(0);
      const bool second = region.load(slots + kLineSize) > region.load(slots);
      region.store_word(slots + (second ? kLineSize : 0) + kWordSize, 77);
    });
  }
  // Damages the newest entry of a block of the file, or the entry on which that builds.
  void damage_entry(size_t block, bool base) {
    damage([&](pmem::Region& region, const meta::Geometry& geometry) {
      const auto log = meta::IntentLog::salvage(region, geometry).value();
      uint64_t at = log->entries().at(block).place.offset;
      if (base) at = region.load(at + offsetof(meta::IntentEntry, base));
      ASSERT_NE(at, 0U);
      region.store_word(at + kLineSize, ~region.load(at + kLineSize));
    });
  }
  void expect_empty_log() {
    const pair::IntentReport report = check(IntentRepair::kNone);
    EXPECT_EQ(report.entries, 0U);
    EXPECT_TRUE(report.problems.empty());
    rig.open();
    EXPECT_EQ(rig.fs().status()->intent.recovered_blocks, 0U);
  }
  std::vector<std::byte> content() { return rig.read(rig.lookup("f"), 0, 3 * kBlockSize); }

  Rig rig;
};

TEST(IntentFsck, SaysWhatTheLogHoldsAndWritesItToDataIfAsked) {
  IntentFsck fsck;
  const pair::IntentReport looked = fsck.check(IntentRepair::kNone);
  EXPECT_EQ(looked.entries, 6U);
  EXPECT_EQ(looked.blocks, 3U);
  EXPECT_EQ(looked.files, 1U);
  EXPECT_EQ(looked.written_blocks, 0U);
  EXPECT_TRUE(looked.problems.empty());
  const pair::IntentReport repaired = fsck.check(IntentRepair::kAll);
  EXPECT_EQ(repaired.written_blocks, 3U);
  EXPECT_TRUE(repaired.problems.empty());
  fsck.expect_empty_log();
  EXPECT_EQ(fsck.content(), blocks(3, 2));
}

TEST(IntentFsck, WithADamagedExpiredWordChecksumsTellWhichEntriesAreRight) {
  IntentFsck fsck;
  fsck.damage_expired_word();
  const pair::IntentReport looked = fsck.check(IntentRepair::kNone);
  ASSERT_EQ(looked.problems.size(), 1U);
  EXPECT_NE(looked.problems[0].text.find("expired word"), std::string::npos);
  EXPECT_FALSE(looked.problems[0].repaired);
  const pair::IntentReport repaired = fsck.check(IntentRepair::kAll);
  ASSERT_EQ(repaired.problems.size(), 1U);
  EXPECT_TRUE(repaired.problems[0].repaired);
  EXPECT_EQ(repaired.written_blocks, 3U);
  EXPECT_EQ(repaired.lost_blocks, 0U);
  fsck.expect_empty_log();
  EXPECT_EQ(fsck.content(), blocks(3, 2));
  EXPECT_EQ(fsck.rig.read(fsck.rig.lookup("first"), 0, kBlockSize), blocks(1, 9));
}

TEST(IntentFsck, WithoutChecksumsADamagedExpiredWordIsSaidToLoseData) {
  IntentFsck fsck(false);
  fsck.damage_expired_word();
  const pair::IntentReport repaired = fsck.check(IntentRepair::kAll);
  EXPECT_EQ(repaired.written_blocks, 0U);
  ASSERT_EQ(repaired.problems.size(), 2U);
  const std::string inode = "inode " + std::to_string([&] {
                              fsck.rig.open();
                              return fsck.rig.lookup("f").value;
                            }());
  EXPECT_NE(
      repaired.problems[1].text.find(inode + ": fsync'd data of the intent log may be lost (3"),
      std::string::npos)
      << repaired.problems[1].text;
}

// Loses the content of one block of three; the others have theirs.
void expect_one_lost(IntentFsck& fsck, uint64_t lost) {
  EXPECT_EQ(fsck.check(IntentRepair::kNone).problems.size(), 2U);
  const pair::IntentReport repaired = fsck.check(IntentRepair::kAll);
  EXPECT_EQ(repaired.written_blocks, 2U);
  EXPECT_EQ(repaired.lost_blocks, 1U);
  ASSERT_EQ(repaired.problems.size(), 2U);
  EXPECT_TRUE(repaired.problems[0].repaired);
  EXPECT_NE(repaired.problems[1].text.find("is lost (1 blocks)"), std::string::npos)
      << repaired.problems[1].text;
  fsck.expect_empty_log();
  const InodeId id = fsck.rig.lookup("f");
  for (uint64_t block = 0; block < 3; ++block) {
    std::vector<std::byte> out(kBlockSize);
    const Result<size_t> got = fsck.rig.fs().read(id, block * kBlockSize, out);
    EXPECT_EQ(got.ok(), block != lost) << block;
    if (got.ok()) {
      EXPECT_EQ(out, blocks(1, 2)) << block;
    }
  }
}

// The entries behind it are whole, and the checksums say that they are right.
TEST(IntentFsck, ADamagedEntryLosesItsBlockAloneAndItIsSaid) {
  for (const uint64_t block : {0U, 1U, 2U}) {
    IntentFsck fsck;
    fsck.damage_entry(block, false);
    expect_one_lost(fsck, block);
  }
}

TEST(IntentFsck, ADamagedBaseLosesTheBlockThatBuildsOnIt) {
  for (const uint64_t block : {0U, 1U, 2U}) {
    IntentFsck fsck;
    fsck.damage_entry(block, true);
    expect_one_lost(fsck, block);
  }
}

TEST(IntentFsck, ABlockThatDataDoesNotTakeIsLostAndTheMountIsWritableAgain) {
  IntentFsck fsck;
  const pair::IntentReport repaired = fsck.check_with_a_failing_write(IntentRepair::kAll);
  EXPECT_EQ(repaired.written_blocks, 2U);
  EXPECT_EQ(repaired.lost_blocks, 1U);
  ASSERT_EQ(repaired.problems.size(), 1U);
  EXPECT_TRUE(repaired.problems[0].repaired);
  EXPECT_NE(repaired.problems[0].text.find("is lost (1 blocks)"), std::string::npos)
      << repaired.problems[0].text;
  fsck.expect_empty_log();
  const InodeId id = fsck.rig.lookup("f");
  EXPECT_EQ(fsck.rig.read(id, 0, kBlockSize), blocks(1, 2));
  std::vector<std::byte> out(kBlockSize);
  EXPECT_EQ(fsck.rig.fs().read(id, kBlockSize, out).error().code, EIO);
  EXPECT_TRUE(fsck.rig.write(id, 0, blocks(3, 5)).ok());
  EXPECT_TRUE(fsck.rig.fs().fsync(id, false).ok());
  EXPECT_EQ(fsck.content(), blocks(3, 5));
}

TEST(IntentFsck, AnAutomaticRepairKeepsABlockThatDataDoesNotTake) {
  IntentFsck fsck;
  const pair::IntentReport tried = fsck.check_with_a_failing_write(IntentRepair::kWithoutLoss);
  ASSERT_EQ(tried.problems.size(), 1U);
  EXPECT_FALSE(tried.problems[0].repaired);
  const pair::IntentReport again = fsck.check(IntentRepair::kWithoutLoss);
  EXPECT_EQ(again.written_blocks, 3U);
  EXPECT_TRUE(again.problems.empty());
  fsck.expect_empty_log();
  EXPECT_EQ(fsck.content(), blocks(3, 2));
}

// Entries that were expired count again with the older slot, but DATA has what META's checksums
// say.
TEST(IntentFsck, AnExpiredEntryIsNotWrittenOverNewerData) {
  IntentFsck fsck;
  fsck.rig.open();
  EXPECT_TRUE(fsck.rig.write(fsck.rig.lookup("f"), 0, blocks(3, 5)).ok());
  EXPECT_TRUE(fsck.rig.fs().sync().ok());
  fsck.rig.keep_off();
  fsck.damage_newer_slot();
  EXPECT_GT(fsck.check(IntentRepair::kNone).entries, 0U);
  EXPECT_EQ(fsck.check(IntentRepair::kAll).written_blocks, 0U);
  fsck.expect_empty_log();
  EXPECT_EQ(fsck.content(), blocks(3, 5));
}

TEST(IntentFsck, WithoutChecksumsABlockBehindADamagedEntryIsSaidToBeDoubtful) {
  IntentFsck fsck(false);
  fsck.damage_entry(0, true);
  const pair::IntentReport repaired = fsck.check(IntentRepair::kAll);
  ASSERT_EQ(repaired.problems.size(), 2U);
  EXPECT_NE(repaired.problems[1].text.find("may be lost (3 blocks)"), std::string::npos)
      << repaired.problems[1].text;
}

// A flush that fails leaves the log as it was.
TEST(IntentFsck, NothingIsForgottenBeforeDataIsFlushed) {
  IntentFsck fsck;
  blockdev::Faults faults;
  faults.fail_flushes_after = 0;
  fsck.rig.device().set_faults(faults);
  fsck.with_pair([](pair::OpenPair& pair, const meta::Geometry&) {
    EXPECT_FALSE(pair::check_intent_log(pair, IntentRepair::kAll).ok());
    return 0;
  });
  fsck.rig.device().set_faults({});
  EXPECT_EQ(fsck.check(IntentRepair::kNone).blocks, 3U);
  fsck.rig.open();
  EXPECT_EQ(fsck.content(), blocks(3, 2));
}

}  // namespace
}  // namespace streamfs::data::intent_test
