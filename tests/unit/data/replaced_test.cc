// What replaces a block that a restore looks at.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "fuse-fs/meta/block_allocator.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/journal.h"
#include "tests/unit/data/rig.h"

namespace streamfs::data {
namespace {

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

// One extent replaces many: a record has room for some of them, and for its part of the one.
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

}  // namespace
}  // namespace streamfs::data
