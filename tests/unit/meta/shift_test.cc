// Ranges collapsed and inserted: the file beside a model of one entry a block.
#include "fuse-fs/meta/shift.h"

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/inode.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

int error_of(const Result<void>& result) {
  return result.ok() ? 0 : result.error().code;
}

// Device blocks by file block; 0 is a hole.
using Blocks = std::vector<uint64_t>;

Blocks blocks_of(Filesystem& fs, InodeId id) {
  const uint64_t count = div_round_up(fs.attributes(id).size, kBlockSize);
  Blocks out(count, 0);
  const auto pieces = fs->map(id, FileBlock{0}, count);
  EXPECT_TRUE(pieces.ok()) << pieces.error().message();
  if (!pieces) return out;
  for (const Piece& piece : *pieces) {
    for (uint64_t i = 0; !piece.hole && i < piece.length; ++i)
      out.at(piece.first.value + i) = piece.block.value + i;
  }
  return out;
}

void collapse(Blocks& blocks, uint64_t at, uint64_t count) {
  const auto first = blocks.begin() + static_cast<ptrdiff_t>(at);
  blocks.erase(first, first + static_cast<ptrdiff_t>(count));
}

void insert(Blocks& blocks, uint64_t at, uint64_t count) {
  blocks.insert(blocks.begin() + static_cast<ptrdiff_t>(at), count, 0);
}

// The file and its blocks are these, each with its own checksum.
void expect_blocks(Filesystem& fs, InodeId id, const Blocks& expected) {
  EXPECT_EQ(blocks_of(fs, id), expected);
  uint64_t mapped = 0;
  for (const uint64_t block : expected) {
    if (block == 0) continue;
    ++mapped;
    uint32_t crc = 0;
    fs->checksums(BlockNo{block}, {&crc, 1});
    EXPECT_EQ(crc, block + 1);
    EXPECT_TRUE(fs->blocks().is_allocated(BlockNo{block}));
  }
  EXPECT_EQ(fs.attributes(id).blocks, mapped);
}

TEST(Shift, ACollapseFreesItsBlocksAndMovesTheRestInOneRecord) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  const uint64_t free = fs->space().free_blocks;
  fs.write(f, 0, 10);
  fs.commit(f);
  Blocks expected = blocks_of(fs, f);
  const uint64_t gone = expected[4], fences = fs.region().counters().fences;
  const Attributes before = fs.attributes(f);
  fs.clock().advance();
  ASSERT_TRUE(fs->collapse_range(f, FileBlock{4}, 3).ok());
  EXPECT_EQ(fs.region().counters().fences, fences + 1);
  collapse(expected, 4, 3);
  expect_blocks(fs, f, expected);
  EXPECT_GT(fs.attributes(f).mtime.seconds, before.mtime.seconds);
  EXPECT_GT(fs.attributes(f).ctime.seconds, before.ctime.seconds);
  EXPECT_FALSE(fs->dirty(f));
  fs.crash();  // it is durable when it returns
  expect_blocks(fs, f, expected);
  EXPECT_EQ(fs.attributes(f).size, 7 * kBlockSize);
  EXPECT_FALSE(fs->blocks().is_allocated(BlockNo{gone}));
  EXPECT_EQ(fs->space().free_blocks, free - 7);
}

TEST(Shift, AnInsertionPutsAHoleInAndKeepsEveryBlock) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 10);
  fs.commit(f);
  Blocks expected = blocks_of(fs, f);
  const uint64_t free = fs->space().free_blocks, fences = fs.region().counters().fences;
  ASSERT_TRUE(fs->insert_range(f, FileBlock{3}, 5).ok());
  EXPECT_EQ(fs.region().counters().fences, fences + 1);
  insert(expected, 3, 5);
  expect_blocks(fs, f, expected);
  fs.crash();
  expect_blocks(fs, f, expected);
  EXPECT_EQ(fs.attributes(f).size, 15 * kBlockSize);
  EXPECT_EQ(fs->space().free_blocks, free);
}

TEST(Shift, TheRestOfTheLastBlockStaysBeyondTheEnd) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 4);
  ASSERT_TRUE(fs->set_size(f, 3 * kBlockSize + 100).ok());
  fs.commit(f);
  ASSERT_TRUE(fs->collapse_range(f, FileBlock{1}, 1).ok());
  EXPECT_EQ(fs.attributes(f).size, 2 * kBlockSize + 100);
  ASSERT_TRUE(fs->insert_range(f, FileBlock{2}, 4).ok());
  EXPECT_EQ(fs.attributes(f).size, 6 * kBlockSize + 100);
}

TEST(Shift, RangesAreCheckedAsExt4Does) {
  Filesystem fs;
  const InodeId f = fs.file("f"), d = fs.directory("d");
  fs.write(f, 0, 4);
  ASSERT_TRUE(fs->set_size(f, 3 * kBlockSize + 1).ok());
  fs.commit(f);
  const auto collapsing = [&](InodeId id, uint64_t first, uint64_t count) {
    return error_of(fs->collapse_range(id, FileBlock{first}, count));
  };
  const auto inserting = [&](InodeId id, uint64_t first, uint64_t count) {
    return error_of(fs->insert_range(id, FileBlock{first}, count));
  };
  EXPECT_EQ(collapsing(f, 1, 3), EINVAL);  // reaches the end
  EXPECT_EQ(collapsing(f, 3, 1), EINVAL);
  EXPECT_EQ(collapsing(f, 4, 1), EINVAL);  // beyond it
  EXPECT_EQ(collapsing(f, 0, ~uint64_t{0}), EINVAL);
  EXPECT_EQ(collapsing(f, 0, 0), EINVAL);
  EXPECT_EQ(collapsing(d, 0, 1), EISDIR);
  EXPECT_EQ(inserting(f, 4, 1), EINVAL);
  EXPECT_EQ(inserting(f, kMaxFileBlocks, 1), EINVAL);
  EXPECT_EQ(inserting(f, 0, 0), EINVAL);
  EXPECT_EQ(inserting(f, 0, kMaxFileBlocks - 3), EFBIG);
  EXPECT_EQ(inserting(f, 4, kMaxFileBlocks - 3), EFBIG);
  EXPECT_EQ(inserting(d, 0, 1), EISDIR);
  EXPECT_EQ(blocks_of(fs, f).size(), 4U);
  EXPECT_EQ(inserting(f, 3, kMaxFileBlocks - 4), 0);  // to the last block a file can have
  EXPECT_EQ(fs.attributes(f).size, (kMaxFileBlocks - 1) * kBlockSize + 1);
  EXPECT_EQ(collapsing(f, 3, kMaxFileBlocks - 4), 0);
  EXPECT_EQ(blocks_of(fs, f).size(), 4U);
}

TEST(Shift, WhatWaitsForItsCommitIsNotMoved) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 4);
  EXPECT_EQ(error_of(fs->collapse_range(f, FileBlock{0}, 1)), EBUSY);
  fs.commit(f);
  ASSERT_TRUE(fs->remove_range(f, FileBlock{1}, 1).ok());
  EXPECT_EQ(error_of(fs->insert_range(f, FileBlock{0}, 1)), EBUSY);
  fs.commit(f);
  fs.write(f, 0, 1, 2);  // in place: only a checksum waits
  EXPECT_EQ(error_of(fs->collapse_range(f, FileBlock{0}, 1)), EBUSY);
  fs.commit(f, 2);
  EXPECT_EQ(error_of(fs->collapse_range(f, FileBlock{0}, 1)), 0);
}

// Most have more slots to move than a record takes.
class ShiftModel : public ::testing::TestWithParam<uint64_t> {};

TEST_P(ShiftModel, EveryFileIsTheModelsAfterEachChangeAndEachCrash) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937_64 random(GetParam());
  const auto below = [&](uint64_t end) {
    return std::uniform_int_distribution<uint64_t>(0, end - 1)(random);
  };
  Filesystem fs;
  const uint64_t free = fs->space().free_blocks;
  const InodeId f = fs.file("f");
  for (uint64_t i = 0; i < 40 + below(800); ++i) fs.write(f, i * 3 + below(2), 1 + below(2));
  fs.commit(f);
  Blocks model = blocks_of(fs, f);
  for (int i = 0; i < 30 && !HasFailure(); ++i) {
    const uint64_t at = below(model.size() - 1), room = model.size() - at - 1;
    if (below(2) == 0 && model.size() > 50) {
      const uint64_t count = 1 + below(below(4) == 0 ? room : std::min<uint64_t>(room, 40));
      ASSERT_TRUE(fs->collapse_range(f, FileBlock{at}, count).ok());
      collapse(model, at, count);
    } else {
      const uint64_t count = 1 + below(40);
      ASSERT_TRUE(fs->insert_range(f, FileBlock{at}, count).ok());
      insert(model, at, count);
    }
    expect_blocks(fs, f, model);
    if (below(4) == 0) {  // slots are found again by what is written after
      const uint64_t first = below(model.size());
      fs.write(f, first, 1);
      fs.commit(f);
      model = blocks_of(fs, f);
    }
    if (below(4) == 0) below(2) == 0 ? fs.crash() : fs.reopen();
    expect_blocks(fs, f, model);
  }
  ASSERT_TRUE(fs->reference(f).ok());
  EXPECT_EQ(fs.unlink("f"), 0);
  fs.forget_and_free(f);
  EXPECT_EQ(fs->space().free_blocks, free);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ShiftModel, ::testing::Range<uint64_t>(1, 9));

// Says on the media that this shift was begun, with a right checksum.
void begin_shift(Filesystem& fs, InodeId id, const Shift& shift, uint64_t size, uint64_t blocks) {
  InodeImage image = load_image(fs.region(), id);
  put_shift(image, shift);
  image.size = size;
  set_block_count(image, blocks);
  image.checksum = inode_checksum(image);
  fs.region().store(inode_offset(id), std::bit_cast<InodeWords>(image));
}

TEST(Shift, OneThatWasCutIsFinishedByTheFirstWhoNeedsTheExtents) {
  for (const bool inserting : {false, true}) {
    Filesystem fs;
    const InodeId f = fs.file("f");
    for (const uint64_t first : {5U, 2U, 0U}) fs.write(f, first, first == 0 ? 2 : first + 1);
    fs.commit(f);
    Blocks expected = blocks_of(fs, f);
    const uint64_t free = fs->space().free_blocks, size = expected.size();
    fs.close();
    if (inserting) {
      insert(expected, 2, 3);
      begin_shift(fs, f, {true, 2, 3, size}, expected.size() * kBlockSize, size);
    } else {
      collapse(expected, 2, 3);
      begin_shift(fs, f, {false, 2, 3, 5}, expected.size() * kBlockSize, size - 3);
    }
    fs.expect_sound();  // a check calls it no problem
    fs.open();
    EXPECT_EQ(fs.attributes(f).blocks, inserting ? size : size - 3);
    EXPECT_EQ(fs.attributes(f).rdev, 0U);
    expect_blocks(fs, f, expected);
    EXPECT_EQ(load_image(fs.region(), f).flags & kShifting, 0);
    EXPECT_EQ(fs->space().free_blocks, inserting ? free : free + 3);
    fs.crash();
    expect_blocks(fs, f, expected);
  }
}

TEST(Shift, AnOrphanInOneIsFreedWhole) {
  Filesystem fs;
  const uint64_t free = fs->space().free_blocks;
  const InodeId f = fs.file("f");
  for (const uint64_t first : {5U, 2U, 0U}) fs.write(f, first, first == 0 ? 2 : first + 1);
  fs.commit(f);
  EXPECT_EQ(fs.unlink("f"), 0);
  fs->journal().checkpoint();
  begin_shift(fs, f, {false, 2, 3, 5}, 8 * kBlockSize, 8);
  fs.crash();
  ASSERT_EQ(fs->leftover_orphans().size(), 1U);
  ASSERT_TRUE(fs->free_orphan(f).ok());
  EXPECT_EQ(fs->space().free_blocks, free);
}

TEST(Shift, OneThatIsImpossibleIsDamage) {
  const Shift impossible[] = {{false, 2, 4, 5},                  // its border is within what goes
                              {false, 2, 0, 2},                  // moves nothing
                              {true, 9, 4, 8},                   // its border is before it
                              {true, 2, 4, kMaxFileBlocks + 1},  // beyond every file
                              {false, 3, 2, 5},                  // an extent lies across it
                              {true, 3, 2, 5}};
  for (const Shift& shift : impossible) {
    Filesystem fs;
    const InodeId f = fs.file("f");
    fs.write(f, 0, 10);
    fs.commit(f);
    fs.close();
    begin_shift(fs, f, shift, 10 * kBlockSize, 10);
    fs.open();
    EXPECT_EQ(fs->map(f, FileBlock{0}, 1).error().code, EIO) << shift.at << " " << shift.border;
    fs.abandon();
  }
}

}  // namespace
}  // namespace streamfs::meta
