// A flush covers both data and the record that names it, where META is rebuilt from the log after a
// power cut: acknowledged data is there, and the rest is there as a whole or not at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/meta/engine.h"
#include "pmem/region.h"
#include "tests/unit/data/ram_device.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kCuts = 60;  // each chooses what of the unflushed the device keeps

std::vector<std::byte> filled_blocks(size_t count, int value) {
  return Rig::filled(count * kBlockSize, value);
}

uint64_t flushes(Rig& rig) {
  return rig.ram().flushes;
}

// How often the device is flushed by `change` and an fsync of it.
template <typename Change>
uint64_t flushes_of(Rig& rig, InodeId id, bool data_only, const Change& change) {
  const uint64_t before = flushes(rig);
  change();
  EXPECT_TRUE(rig.fs().fsync(id, data_only).ok());
  return flushes(rig) - before;
}

TEST(Conditional, AnFsyncOfNewBlocksTakesOneFlush) {
  for (const auto meta_class : {pmem::MetaClass::kSynced, pmem::MetaClass::kVolatile}) {
    Rig rig(Rig::with_log(meta_class));
    const InodeId id = rig.create("f");
    for (uint64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(
          flushes_of(rig, id, i % 2 != 0,
                     [&] { ASSERT_TRUE(rig.write(id, i * kBlockSize, filled_blocks(1, 1)).ok()); }),
          1U);
    }
    const uint64_t before = flushes(rig);
    EXPECT_TRUE(rig.fs().fsync(id, false).ok());
    EXPECT_EQ(flushes(rig), before) << "nothing new";
    EXPECT_EQ(flushes_of(rig, id, false,
                         [&] { ASSERT_TRUE(rig.write(id, 1 << 20, filled_blocks(200, 1)).ok()); }),
              2U)
        << "much data is flushed before it is named";
  }
}

// Several files are synced while one flush runs. For some the flush covers the data already, so
// only their record has to be flushed; for others both.
TEST(Conditional, FsyncsSideBySideShareOneFlushForDataAndRecords) {
  Rig::Options options = Rig::with_log();
  options.faulty = false;
  Rig rig(options);
  constexpr size_t kThreads = 8;
  std::vector<InodeId> files;
  for (size_t t = 0; t < kThreads; ++t) files.push_back(rig.create("f" + std::to_string(t)));
  ASSERT_TRUE(rig.fs().sync().ok());
  const auto write = [&](size_t t) {
    ASSERT_TRUE(rig.write(files[t], 0, filled_blocks(1, 1)).ok());
  };
  const auto fsync = [&](size_t t) { ASSERT_TRUE(rig.fs().fsync(files[t], false).ok()); };
  for (size_t t = 0; t < kThreads; t += 2) write(t);
  rig.ram().flush_ms = 400;
  const uint64_t before = flushes(rig);
  std::vector<std::thread> threads;
  threads.emplace_back(fsync, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (size_t t = 1; t < kThreads; ++t) {
    if (t % 2 != 0) write(t);
    threads.emplace_back(fsync, t);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(flushes(rig) - before, 2U);
}

TEST(Conditional, AnFsyncOfOverwrittenBlocksTakesOneFlushAndAnFdatasyncNoRecord) {
  Rig rig(Rig::with_log());
  const InodeId id = rig.create("f");
  ASSERT_TRUE(rig.write(id, 0, filled_blocks(4, 1)).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.write(id, 0, filled_blocks(1, 2)).ok());  // settles them
  ASSERT_TRUE(rig.fs().sync().ok());
  const auto commits = [&] { return rig.fs().status()->journal.commits; };
  const auto overwrite = [&] { ASSERT_TRUE(rig.write(id, kBlockSize, filled_blocks(2, 3)).ok()); };
  const uint64_t before = commits();
  EXPECT_EQ(flushes_of(rig, id, true, overwrite), 1U);
  EXPECT_EQ(commits(), before);
  EXPECT_EQ(flushes_of(rig, id, false, overwrite), 1U);
  EXPECT_EQ(commits(), before + 1);
  const auto grow = [&] { ASSERT_TRUE(rig.write(id, 4 * kBlockSize, filled_blocks(1, 3)).ok()); };
  EXPECT_EQ(flushes_of(rig, id, true, grow), 1U);
  EXPECT_EQ(commits(), before + 2) << "a size is needed to read it back";
}

// As programs write logs: each time a little behind what was made durable the time before.
TEST(Conditional, AnAppendWithinABlockTakesOneFlush) {
  Rig rig(Rig::with_log());
  const InodeId id = rig.create("f");
  uint64_t size = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    const uint64_t length = 100 + 137 * i;
    const auto append = [&] { ASSERT_TRUE(rig.write(id, size, Rig::filled(length, 1)).ok()); };
    EXPECT_EQ(flushes_of(rig, id, i % 2 != 0, append), 1U) << i;
    size += length;
  }
  const auto change = [&] { ASSERT_TRUE(rig.write(id, size - 1, Rig::filled(1, 2)).ok()); };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(flushes_of(rig, id, true, change), 1U);
}

// A restore looks at what the fsync before named: what replaces it gets a block of its own.
TEST(Conditional, AnOverwriteOfWhatWasJustMadeDurableTakesOneFlush) {
  Rig rig(Rig::with_log());
  const InodeId id = rig.create("f");
  for (uint64_t i = 1; i <= 40; ++i) {
    const auto bytes = filled_blocks(4, static_cast<int>(i));
    const uint64_t at = i % 3 * kBlockSize;
    const auto change = [&] { ASSERT_TRUE(rig.write(id, at, bytes).ok()); };
    EXPECT_EQ(flushes_of(rig, id, i % 2 != 0, change), 1U) << i;
    EXPECT_EQ(rig.read(id, at, bytes.size()), bytes) << i;
  }
  rig.unmount_losing_meta();
  EXPECT_EQ(rig.read(rig.lookup("f"), kBlockSize, 4 * kBlockSize), filled_blocks(4, 40));
  EXPECT_TRUE(rig.check().problems.empty());
}

TEST(Conditional, WhereNoBlockIsFreeAnOverwriteStaysInItsPlace) {
  Rig rig(Rig::with_log());
  const InodeId id = rig.create("f"), full = rig.create("full");
  ASSERT_TRUE(rig.write(full, 0, filled_blocks(rig.fs().space().free_blocks - 8, 1)).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.write(id, 0, filled_blocks(8, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  ASSERT_TRUE(rig.write(id, 0, filled_blocks(8, 2)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  rig.power_cut_losing_meta(1);
  EXPECT_EQ(rig.read(rig.lookup("f"), 0, 9 * kBlockSize), filled_blocks(8, 2));
}

// A commit of what was flushed before takes a block away no earlier than it has another one.
TEST(Conditional, WhatIsReplacedStaysUntilWhatReplacesItIsFlushed) {
  for (const bool truncated : {false, true}) {
    Rig rig(Rig::with_log());
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, filled_blocks(4, 1)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    const uint64_t flushed = rig.fs().status()->device.flushes;
    ASSERT_TRUE(rig.write(id, kBlockSize, filled_blocks(2, 2)).ok());
    EXPECT_EQ(rig.fs().status()->device.flushes, flushed) << "it was not written in place";
    if (truncated) {
      ASSERT_TRUE(rig.fs().truncate(id, 2 * kBlockSize).ok());
    }
    ASSERT_TRUE(rig.fs().engine().commit_inode(id, 0).ok());
    rig.kill();
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, 5 * kBlockSize), filled_blocks(truncated ? 2 : 4, 1));
    ASSERT_TRUE(rig.fs().truncate(rig.lookup("f"), 5 * kBlockSize).ok());
    const auto rest = rig.read(rig.lookup("f"), 2 * kBlockSize, kBlockSize);
    EXPECT_EQ(rest, filled_blocks(1, truncated ? 0 : 1));
    EXPECT_TRUE(rig.check().problems.empty());
  }
}

// Two records look at one block, the second at less of it.
TEST(Conditional, AnAppendLeavesWhatAnyRecordLooksAt) {
  const auto zeroes = Rig::filled(50, 0), bytes = Rig::filled(50, 1);
  for (uint64_t seed = 1; seed <= kCuts / 5; ++seed) {
    Rig rig(Rig::with_log());
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, bytes).ok());
    ASSERT_TRUE(rig.write(id, 50, zeroes).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    ASSERT_TRUE(rig.fs().truncate(id, 50).ok());
    const auto ahead = rig.fs().engine().commit_ahead(id, uint64_t{1} << 40U, 0);
    ASSERT_TRUE(ahead.ok() && *ahead);
    ASSERT_TRUE(rig.write(id, 50, bytes).ok());
    rig.power_cut_losing_meta(seed);
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, 50), bytes) << seed;
  }
}

// A file that is appended to, changed, cut and made durable, and the bytes that it has.
class ChangingFile {
 public:
  ChangingFile(Rig& rig, uint64_t seed) : rig_(rig), random_(seed), id_(rig.create("f")) {}

  void append() {
    const auto added = Rig::filled(1 + random_() % 6000, value());
    ASSERT_TRUE(rig_.write(id_, bytes_.size(), added).ok());
    bytes_.insert(bytes_.end(), added.begin(), added.end());
  }
  void change() {
    if (bytes_.empty()) return;
    const size_t from = bytes_.size() - 1 - random_() % std::min<size_t>(bytes_.size(), 5000);
    const auto changed = Rig::filled(1 + random_() % (bytes_.size() - from), value());
    ASSERT_TRUE(rig_.write(id_, from, changed).ok());
    std::ranges::copy(changed, bytes_.begin() + static_cast<ptrdiff_t>(from));
  }
  void resize() {
    const size_t size = bytes_.size() + 2000 - std::min<size_t>(bytes_.size(), random_() % 6000);
    ASSERT_TRUE(rig_.fs().truncate(id_, size).ok());
    bytes_.resize(size);
  }
  void step() {
    const uint64_t kind = random_() % 8;
    if (kind == 0) return change();
    if (kind == 1) return resize();
    append();
    if (kind > 2) {
      ASSERT_TRUE(rig_.fs().fsync(id_, kind % 2 != 0).ok());
    }
  }
  InodeId id() const { return id_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  int value() { return 1 + static_cast<int>(random_() % 250); }

  Rig& rig_;
  std::mt19937_64 random_;
  InodeId id_;
  std::vector<std::byte> bytes_;
};

// All changes after the last fsync are appends: they are there as far as a record says, and the
// data before them is as it was.
TEST(Conditional, AppendsTakeNothingBackOfWhatTheyStandBehind) {
  uint64_t old = 0, fresh = 0;
  for (uint64_t seed = 1; seed <= 2 * kCuts; ++seed) {
    Rig rig(Rig::with_log());
    ChangingFile file(rig, seed);
    for (uint64_t i = seed % 12 + 1; i > 0; --i) file.step();
    file.append();
    ASSERT_TRUE(rig.fs().fsync(file.id(), false).ok());
    const auto acknowledged = file.bytes();
    for (uint64_t i = seed % 3; i < 3; ++i) file.append();
    if (seed % 2 != 0) {
      rig.device().set_faults({.fail_flushes_after = 0});
      EXPECT_EQ(rig.fs().fsync(file.id(), false).error().code, EIO);
      rig.device().set_faults({});
    }
    rig.power_cut_losing_meta(seed);
    const auto found = rig.read(rig.lookup("f"), 0, file.bytes().size() + kBlockSize);
    const bool is_old = found.size() == acknowledged.size();
    (is_old ? old : fresh) += 1;
    ASSERT_EQ(found, is_old ? acknowledged : file.bytes()) << seed;
  }
  EXPECT_GT(old, 0U);
  EXPECT_GT(fresh, 0U);
}

TEST(Conditional, PersistentMetaAndBlocksWithoutChecksumsAreFlushedFirst) {
  Rig::Options plain = Rig::with_log();
  plain.checksums = false;
  for (const Rig::Options& options : {Rig::with_log(pmem::MetaClass::kPersistent), plain}) {
    Rig rig(options);
    const InodeId id = rig.create("f");
    EXPECT_EQ(flushes_of(rig, id, false,
                         [&] { ASSERT_TRUE(rig.write(id, 0, filled_blocks(1, 1)).ok()); }),
              2U);
  }
}

TEST(Conditional, WhatWasAcknowledgedIsThere) {
  Rig rig(Rig::with_log());
  for (uint64_t seed = 1; seed <= kCuts; ++seed) {
    const InodeId id = rig.create("f" + std::to_string(seed));
    const auto bytes = filled_blocks(3, static_cast<int>(seed));
    ASSERT_TRUE(rig.write(id, 0, bytes).ok());
    ASSERT_TRUE(rig.fs().fsync(id, seed % 2 != 0).ok());
    rig.power_cut_losing_meta(seed);
    EXPECT_EQ(rig.read(rig.lookup("f" + std::to_string(seed)), 0, bytes.size()), bytes) << seed;
    ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "f" + std::to_string(seed)).ok());
  }
}

// The power goes in the one flush: the record may have arrived without its data.
TEST(Conditional, WhatWasNotAcknowledgedIsThereAsAWholeOrNotAtAll) {
  uint64_t old = 0, fresh = 0;
  for (uint64_t seed = 1; seed <= kCuts; ++seed) {
    Rig rig(Rig::with_log());
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, filled_blocks(2, 1)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    ASSERT_TRUE(rig.write(id, 2 * kBlockSize, filled_blocks(1, 2)).ok());
    rig.device().set_faults({.fail_flushes_after = 0});
    EXPECT_EQ(rig.fs().fsync(id, false).error().code, EIO);
    rig.device().set_faults({});
    rig.power_cut_losing_meta(seed);
    const InodeId found = rig.lookup("f");
    const uint64_t size = rig.fs().attributes(found)->size;
    auto expected = filled_blocks(2, 1);
    if (size == 3 * kBlockSize) {
      const auto added = filled_blocks(1, 2);
      expected.insert(expected.end(), added.begin(), added.end());
    }
    (size == 3 * kBlockSize ? fresh : old) += 1;
    EXPECT_EQ(rig.read(found, 0, 4 * kBlockSize), expected) << seed;
  }
  EXPECT_GT(old, 0U);
  EXPECT_GT(fresh, 0U);
}

// A change of a block that a condition names settles the condition: a restore does not look at it.
TEST(Conditional, AnOverwriteDoesNotTakeBackWhatWasAcknowledged) {
  for (uint64_t seed = 1; seed <= kCuts; ++seed) {
    Rig rig(Rig::with_log());
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, filled_blocks(2, 1)).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    ASSERT_TRUE(rig.write(id, 0, filled_blocks(1, 2)).ok());
    rig.power_cut_losing_meta(seed);
    const auto found = rig.read(rig.lookup("f"), 0, 3 * kBlockSize);
    ASSERT_EQ(found.size(), 2 * kBlockSize) << seed;
    for (size_t i = 0; i < found.size(); ++i) {
      const bool may_be_new = i < kBlockSize && found[i] == std::byte{2};
      ASSERT_TRUE(found[i] == std::byte{1} || may_be_new) << seed << " at " << i;
    }
  }
}

// A file is freed while its fsync still waits, and another one's shares the flush.
TEST(Conditional, ABlockIsNotReusedWhileARestoreWouldLookAtIt) {
  for (uint64_t seed = 1; seed <= kCuts / 5; ++seed) {
    Rig rig(Rig::with_log());
    const InodeId full = rig.create("full");  // so that what is freed is what is left
    ASSERT_TRUE(rig.write(full, 0, filled_blocks(rig.fs().space().free_blocks - 24, 1)).ok());
    ASSERT_TRUE(rig.fs().sync().ok());
    const InodeId gone = rig.create("gone");
    ASSERT_TRUE(rig.write(gone, 0, filled_blocks(20, 2)).ok());
    const auto ahead = rig.fs().engine().commit_ahead(gone, uint64_t{1} << 40U, 0);
    ASSERT_TRUE(ahead.ok() && *ahead);
    ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "gone").ok());
    rig.fs().forget(gone, 1);
    const InodeId named = rig.create("named");
    ASSERT_TRUE(rig.fs().maintenance().free_orphans().ok());
    ASSERT_TRUE(rig.fs().fsync(named, false).ok());  // and what "gone" waits for
    ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
    ASSERT_TRUE(rig.write(named, 0, filled_blocks(20, 3)).ok());
    rig.power_cut_losing_meta(seed);
    EXPECT_TRUE(rig.fs().lookup(rig.fs().root(), "named").ok()) << seed;
    EXPECT_FALSE(rig.fs().lookup(rig.fs().root(), "gone").ok()) << seed;
  }
}

// A block that the file had for a while, and that is another's when the power goes.
TEST(Conditional, ABlockThatLeftTheFileIsNoCondition) {
  for (uint64_t seed = 1; seed <= kCuts / 5; ++seed) {
    Rig rig(Rig::with_log());
    const InodeId full = rig.create("full");
    ASSERT_TRUE(rig.write(full, 0, filled_blocks(rig.fs().space().free_blocks - 2, 1)).ok());
    ASSERT_TRUE(rig.fs().sync().ok());
    const InodeId id = rig.create("f"), other = rig.create("other");
    for (int value = 2; value <= 3; ++value)
      ASSERT_TRUE(rig.write(id, 0, filled_blocks(2, value)).ok());
    ASSERT_TRUE(rig.fs().truncate(id, 0).ok());
    ASSERT_TRUE(rig.write(id, 0, filled_blocks(2, 4)).ok());
    ASSERT_TRUE(rig.fs().truncate(id, kBlockSize).ok());
    ASSERT_TRUE(rig.fs().fsync(id, false).ok());
    ASSERT_TRUE(rig.write(other, 0, filled_blocks(1, 5)).ok());
    rig.power_cut_losing_meta(seed);
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, 2 * kBlockSize), filled_blocks(1, 4)) << seed;
  }
}

TEST(Conditional, WhatTheTimerCommitsSurvivesAPowerCutToo) {
  for (const auto meta_class : {pmem::MetaClass::kPersistent, pmem::MetaClass::kSynced}) {
    Rig rig(Rig::with_log(meta_class));
    const InodeId id = rig.create("f");
    rig.clock().ms += 1000;
    rig.fs().maintenance().timer_round();  // the name
    ASSERT_TRUE(rig.write(id, 0, filled_blocks(100, 1)).ok());
    rig.clock().ms += 1000;
    rig.fs().maintenance().timer_round();
    rig.power_cut_losing_meta(1);
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, 101 * kBlockSize), filled_blocks(100, 1));
  }
}

TEST(Conditional, WhatTheReclaimerCommitsWhereLittleIsFreeSurvivesAPowerCutToo) {
  for (const auto meta_class : {pmem::MetaClass::kPersistent, pmem::MetaClass::kSynced}) {
    Rig rig(Rig::with_log(meta_class));
    const InodeId id = rig.create("f"), rest = rig.create("rest");
    const meta::Space space = rig.fs().engine().space();
    const uint64_t most = space.free_blocks - space.data_blocks / 9;
    for (uint64_t at = 0; at < most; at += 100)
      ASSERT_TRUE(rig.write(rest, at * kBlockSize, filled_blocks(100, 2)).ok());
    rig.clock().ms += 1000;
    rig.fs().maintenance().timer_round();
    ASSERT_TRUE(rig.write(id, 0, filled_blocks(100, 1)).ok());  // nothing is freed by it
    rig.clock().ms += 500;
    rig.fs().maintenance().reclaim_round();
    rig.power_cut_losing_meta(1);
    EXPECT_EQ(rig.read(rig.lookup("f"), 0, 101 * kBlockSize), filled_blocks(100, 1));
  }
}

// An unmount, a growth of the log into a new snapshot, and the next mount go on from there.
TEST(Conditional, ManyRecordsRunThroughTheLogAndItsSnapshots) {
  Rig rig(Rig::with_log());
  const InodeId id = rig.create("f");
  for (uint64_t i = 0; i < 900; ++i) {
    ASSERT_TRUE(rig.write(id, i * kBlockSize, filled_blocks(1, static_cast<int>(i % 251))).ok());
    ASSERT_TRUE(rig.fs().fsync(id, true).ok());
    if (i % 300 != 299) continue;
    rig.power_cut_losing_meta(i);
    ASSERT_EQ(rig.lookup("f"), id);
    for (uint64_t block = 0; block <= i; ++block) {
      ASSERT_EQ(rig.read(id, block * kBlockSize, kBlockSize),
                filled_blocks(1, static_cast<int>(block % 251)))
          << block;
    }
  }
}

// A record names all uncommitted blocks, also those that another file's fsync has flushed.
TEST(Conditional, ManyScatteredBlocksFlushedBeforeAreCommittedAfterTheFlush) {
  Rig rig(Rig::with_log());
  const InodeId scattered = rig.create("scattered");
  const InodeId other = rig.create("other");
  constexpr uint64_t kBlocks = 600;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    ASSERT_TRUE(rig.write(scattered, 2 * i * kBlockSize, filled_blocks(1, 1)).ok());
  }
  ASSERT_TRUE(rig.write(other, 0, filled_blocks(200, 2)).ok());
  ASSERT_TRUE(rig.fs().fsync(other, false).ok());
  ASSERT_TRUE(rig.write(scattered, 2 * kBlocks * kBlockSize, filled_blocks(1, 3)).ok());
  ASSERT_TRUE(rig.fs().fsync(scattered, false).ok());
  rig.power_cut_losing_meta(1);
  ASSERT_EQ(rig.lookup("scattered"), scattered);
  for (uint64_t i = 0; i <= kBlocks; ++i) {
    ASSERT_EQ(rig.read(scattered, 2 * i * kBlockSize, kBlockSize),
              filled_blocks(1, i < kBlocks ? 1 : 3))
        << i;
  }
}

}  // namespace
}  // namespace streamfs::data
