// Overwrites of blocks that a restore looks at, and the conditions of a record while they wait: no
// cut shows a file as it never was, nor another file's data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/blockdev/faulty_device.h"
#include "fuse-fs/meta/block_allocator.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/journal.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

constexpr uint64_t kPowerCuts = 24;  // each chooses what of the unflushed the device keeps
constexpr uint64_t kAnyEpoch = uint64_t{1} << 40U;

std::vector<std::byte> whole_blocks(size_t count, int value) {
  return Rig::filled(count * kBlockSize, value);
}

// Leaves so many blocks free.
void fill_up(Rig& rig, uint64_t left) {
  const InodeId full = rig.create("full");
  ASSERT_TRUE(rig.write(full, 0, whole_blocks(rig.fs().space().free_blocks - left, 1)).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
}

// Blocks that are free afterwards still hold `value`: the device keeps trimmed data.
void leave_behind(Rig& rig, uint64_t blocks, int value) {
  const InodeId gone = rig.create("gone");
  ASSERT_TRUE(rig.write(gone, 0, whole_blocks(blocks, value)).ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.fs().unlink(rig.fs().root(), "gone").ok());
  rig.fs().forget(gone, 1);
  ASSERT_TRUE(rig.fs().maintenance().free_orphans().ok());
  ASSERT_TRUE(rig.fs().sync().ok());
  ASSERT_TRUE(rig.fs().maintenance().reclaim().ok());
}

// The log gets what there is, and the power goes in the flush that would make it durable.
void cut_in_the_flush(Rig& rig, uint64_t seed) {
  rig.device().set_faults({.fail_flushes_after = 0});
  EXPECT_EQ(rig.fs().fsync(rig.lookup("full"), false).error().code, EIO);
  EXPECT_EQ(rig.fs().sync().error().code, EROFS);
  rig.device().set_faults({});
  rig.power_cut_losing_meta(seed);
}

bool has(const std::vector<std::byte>& bytes, int value) {
  return std::ranges::find(bytes, static_cast<std::byte>(value)) != bytes.end();
}

Rig::Options without_discard() {
  Rig::Options options = Rig::with_log();
  options.mount.discard = false;
  options.blocks = 2048;
  return options;
}

// Each of 64 blocks that were made durable is replaced: more steps than a record has room for.
TEST(Replaced, NoRecordTakesAwayWhatTheNextOneReplaces) {
  Rig rig(Rig::with_log());
  const InodeId id = rig.create("f");
  constexpr uint64_t kReplaced = 64;
  const auto write_all = [&](int value) {
    for (uint64_t i = 0; i < kReplaced; ++i)
      ASSERT_TRUE(rig.write(id, 2 * i * kBlockSize, whole_blocks(1, value)).ok());
  };
  write_all(1);
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  write_all(2);
  int records = 0;
  rig.fs().engine().journal().set_sink([&](auto&&...) {
    if (++records == 1) rig.keep();
  });
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  EXPECT_GT(records, 1);
  rig.kill_as_kept();
  const auto found = rig.read(rig.lookup("f"), 0, 2 * kReplaced * kBlockSize);
  ASSERT_EQ(found.size(), (2 * kReplaced - 1) * kBlockSize);
  for (uint64_t i = 0; i < kReplaced; ++i)
    EXPECT_NE(found[2 * i * kBlockSize], std::byte{0}) << "block " << 2 * i << " is gone";
  EXPECT_TRUE(rig.check().problems.empty());
}

// An extent replaces many: a record has room for some of them, and for its part of the new one.
TEST(Replaced, AnExtentIsCommittedInPartsWhereItReplacesMany) {
  Rig rig(Rig::with_log());
  const InodeId id = rig.create("f");
  constexpr uint64_t kPieces = 200;
  for (const uint64_t odd : {0U, 1U}) {
    for (uint64_t i = 0; i < kPieces; i += 2)
      ASSERT_TRUE(rig.write(id, (i + odd) * kBlockSize, whole_blocks(1, 1)).ok());
  }
  ASSERT_TRUE(rig.fs().sync().ok());
  meta::Engine& engine = rig.fs().engine();
  const auto run = engine.blocks().reserve_whole(kPieces);
  ASSERT_TRUE(run.has_value());
  meta::WriteResult replaced;
  replaced.added = {{FileBlock{0}, run->first, kPieces, kDefaultVStream}};
  replaced.epoch = kAnyEpoch;
  ASSERT_TRUE(engine.finish_write(id, replaced).ok());
  int records = 0;
  engine.journal().set_sink([&](auto&&...) {
    if (++records == 1) rig.keep();
  });
  ASSERT_TRUE(engine.commit_inode(id, kAnyEpoch).ok());
  EXPECT_GT(records, 1);
  EXPECT_EQ(engine.map(id, FileBlock{0}, kPieces)->size(), 1U);
  EXPECT_EQ(rig.fs().attributes(id)->blocks, kPieces);
  EXPECT_FALSE(engine.dirty(id));
  EXPECT_TRUE(rig.check().problems.empty());
  rig.kill_as_kept();
  const auto pieces = rig.fs().engine().map(rig.lookup("f"), FileBlock{0}, kPieces);
  ASSERT_TRUE(pieces.ok());
  EXPECT_GT(pieces->size(), 1U);
  for (const meta::Piece& piece : *pieces) EXPECT_FALSE(piece.hole) << piece.first.value;
  EXPECT_TRUE(rig.check().problems.empty());
}

// An fsync that began before an overwrite commits what was there before it: in another block.
TEST(Replaced, ARecordIsConditionalOnABlockThatALaterWriteReplaces) {
  uint64_t fresh = 0;
  Rig::Options at_once = without_discard();
  at_once.mount.write_behind_mib = 0;  // the engine is asked here, not who writes out before
  for (uint64_t seed = 1; seed <= kPowerCuts; ++seed) {
    Rig rig(at_once);
    fill_up(rig, 3);
    leave_behind(rig, 3, 7);
    meta::Engine& engine = rig.fs().engine();
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(100, 1)).ok());
    auto ahead = engine.commit_ahead(id, kAnyEpoch, 0);  // an fsync, that waits for its flush
    ASSERT_TRUE(ahead.ok() && *ahead);
    ASSERT_TRUE(rig.write(id, 100, Rig::filled(1900, 2)).ok());
    const auto run = engine.blocks().reserve(1, kDefaultPStream, {});
    ASSERT_TRUE(run.ok());
    meta::WriteResult later;  // an overwrite while another one's flush runs
    later.added = {{FileBlock{0}, run->first, 1, kDefaultVStream}};
    later.end_offset = 2000;
    later.epoch = kAnyEpoch + 1;
    ASSERT_TRUE(engine.finish_write(id, later).ok());
    ahead = engine.commit_ahead(id, kAnyEpoch, 0);
    ASSERT_TRUE(ahead.ok() && *ahead);
    cut_in_the_flush(rig, seed);
    const auto found = rig.fs().lookup(rig.fs().root(), "f");
    if (!found.ok()) continue;
    const auto bytes = rig.read(found->id, 0, kBlockSize);
    auto expected = Rig::filled(100, 1);
    if (bytes.size() == 2000) expected.resize(2000, std::byte{2});
    if (bytes.empty()) expected.clear();
    fresh += bytes.size() == 2000 ? 1 : 0;
    EXPECT_FALSE(has(bytes, 7)) << "of another file, seed " << seed;
    EXPECT_EQ(bytes, expected) << seed;
  }
  EXPECT_GT(fresh, 0U);
}

// A file grows over the rest of its last block while another one's commit goes on.
TEST(Replaced, ALongerFileShowsNothingOfWhoHadItsBlockBefore) {
  for (uint64_t seed = 1; seed <= kPowerCuts; ++seed) {
    Rig rig(without_discard());
    fill_up(rig, 3);
    leave_behind(rig, 3, 7);
    meta::Engine& engine = rig.fs().engine();
    const InodeId id = rig.create("f");
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(100, 1)).ok());
    const auto ahead = engine.commit_ahead(id, kAnyEpoch, 0);
    ASSERT_TRUE(ahead.ok() && *ahead);
    ASSERT_TRUE(rig.fs().truncate(id, kBlockSize).ok());
    ASSERT_TRUE(engine.commit_inode(id, 0).ok());  // of what was flushed before
    cut_in_the_flush(rig, seed);
    const auto found = rig.fs().lookup(rig.fs().root(), "f");
    if (!found.ok()) continue;
    EXPECT_FALSE(has(rig.read(found->id, 0, kBlockSize), 7)) << "of another file, seed " << seed;
  }
}

// A truncated tail does not come back with an append.
TEST(Replaced, AnAppendBehindACutIsThereAsAWholeOrNotAtAll) {
  uint64_t fresh = 0;
  for (const bool appends : {true, false}) {
    for (uint64_t seed = 1; seed <= kPowerCuts; ++seed) {
      Rig rig(Rig::with_log());
      const InodeId full = rig.create("full"), id = rig.create("f");
      ASSERT_TRUE(rig.write(id, 0, whole_blocks(3, 1)).ok());
      for (int i = 0; i < 3; ++i) {  // until it is settled
        ASSERT_TRUE(rig.fs().fsync(id, false).ok());
        ASSERT_TRUE(rig.write(full, 0, Rig::filled(1, i)).ok());
        ASSERT_TRUE(rig.fs().fsync(full, false).ok());
      }
      ASSERT_TRUE(rig.fs().truncate(id, 100).ok());
      auto expected = Rig::filled(100, 1);
      expected.resize(3000, static_cast<std::byte>(appends ? 2 : 0));
      if (appends) {
        ASSERT_TRUE(rig.write(id, 100, Rig::filled(2900, 2)).ok());
      } else {
        ASSERT_TRUE(rig.fs().truncate(id, 3000).ok());
      }
      rig.device().set_faults({.fail_flushes_after = 0});
      EXPECT_EQ(rig.fs().fsync(id, false).error().code, EIO);
      rig.device().set_faults({});
      rig.power_cut_losing_meta(seed);
      const auto found = rig.read(rig.lookup("f"), 0, 4 * kBlockSize);
      if (found.size() != 3000) continue;
      ++fresh;
      EXPECT_EQ(found, expected) << seed;
    }
  }
  EXPECT_GT(fresh, 0U);
}

// A new block, flushed by another file's fsync, is appended to before its own fsync.
TEST(Replaced, AnAppendToABlockThatNoRecordNamesIsThereAsAWholeOrNotAtAll) {
  uint64_t fresh = 0;
  for (uint64_t seed = 1; seed <= kPowerCuts; ++seed) {
    Rig rig(Rig::with_log());
    const InodeId other = rig.create("other"), id = rig.create("f");
    ASSERT_TRUE(rig.fs().sync().ok());
    ASSERT_TRUE(rig.write(id, 0, Rig::filled(100, 1)).ok());
    ASSERT_TRUE(rig.write(other, 0, Rig::filled(100, 1)).ok());
    ASSERT_TRUE(rig.fs().fsync(other, false).ok());
    ASSERT_TRUE(rig.write(id, 100, Rig::filled(2900, 2)).ok());
    rig.device().set_faults({.fail_flushes_after = 0});
    EXPECT_EQ(rig.fs().fsync(id, false).error().code, EIO);
    rig.device().set_faults({});
    rig.power_cut_losing_meta(seed);
    const auto found = rig.read(rig.lookup("f"), 0, 2 * kBlockSize);
    if (found.empty()) continue;
    ++fresh;
    auto expected = Rig::filled(100, 1);
    expected.resize(3000, std::byte{2});
    EXPECT_EQ(found, expected) << seed;
  }
  EXPECT_GT(fresh, 0U);
}

// Room for what is new is not spent on what could stay.
TEST(Replaced, AWriteThatThereIsRoomForSucceeds) {
  Rig rig(Rig::with_log());
  const InodeId id = rig.create("f");
  fill_up(rig, 3);
  ASSERT_TRUE(rig.write(id, 0, whole_blocks(1, 1)).ok());
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  ASSERT_EQ(rig.fs().space().free_blocks, 2U);
  const Result<void> done = rig.write(id, 0, whole_blocks(3, 2));
  EXPECT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(rig.read(id, 0, 4 * kBlockSize), whole_blocks(3, 2));
}

// As programs write logs that are not flushed at each line.
TEST(Replaced, ManyAppendsWithinABlockTakeOneFlush) {
  Rig rig(Rig::with_log());
  const InodeId id = rig.create("f");
  uint64_t size = 0;
  const auto append = [&] { ASSERT_TRUE(rig.write(id, size++, Rig::filled(1, 1)).ok()); };
  append();
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  for (int i = 0; i < 100; ++i) append();
  const uint64_t before = rig.ram().flushes;
  ASSERT_TRUE(rig.fs().fsync(id, false).ok());
  EXPECT_EQ(rig.ram().flushes - before, 1U);
}

}  // namespace
}  // namespace streamfs::data
