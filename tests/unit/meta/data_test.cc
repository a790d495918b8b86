#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/inode.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

// "data@first+length" or "hole@…" for each piece.
std::string shape(Filesystem& fs, InodeId id, uint64_t first, uint64_t count) {
  std::string out;
  const auto pieces = fs->map(id, FileBlock{first}, count);
  for (const Piece& piece : *pieces) {
    out += (out.empty() ? "" : " ") + std::string(piece.hole ? "hole@" : "data@") +
           std::to_string(piece.first.value) + "+" + std::to_string(piece.length);
  }
  return out;
}

std::vector<uint32_t> stored(Filesystem& fs, BlockNo first, size_t count) {
  std::vector<uint32_t> out(count);
  fs->checksums(first, out);
  return out;
}

// Ends a write that left one block with this checksum.
void finish_overwrite(Filesystem& fs, InodeId id, BlockNo block, uint32_t checksum,
                      uint64_t epoch) {
  WriteResult result;
  result.checksums = {{block, checksum}};
  result.epoch = epoch;
  ASSERT_TRUE(fs->finish_write(id, result).ok());
}

TEST(Data, AWriteShowsAtOnceAndACrashBeforeItsCommitTakesItBack) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  const uint64_t free = fs->space().free_blocks;
  fs.write(f, 2, 3);
  EXPECT_EQ(shape(fs, f, 0, 8), "hole@0+2 data@2+3 hole@5+3");
  EXPECT_EQ(fs.attributes(f).size, 5 * kBlockSize);
  EXPECT_EQ(fs.attributes(f).blocks, 3U);
  EXPECT_TRUE(fs->dirty(f));
  fs.crash();
  EXPECT_EQ(shape(fs, f, 0, 8), "hole@0+8");
  EXPECT_EQ(fs.attributes(f).size, 0U);
  EXPECT_EQ(fs->space().free_blocks, free);
}

TEST(Data, ACommittedWriteSurvivesACrashWithItsChecksums) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 100);
  fs.commit(f);
  EXPECT_FALSE(fs->dirty(f));
  fs.crash();
  EXPECT_EQ(shape(fs, f, 0, 100), "data@0+100");
  EXPECT_EQ(fs.attributes(f).size, 100 * kBlockSize);
  EXPECT_EQ(fs.attributes(f).blocks, 100U);
  const BlockNo block = fs->map(f, FileBlock{0}, 100)->front().block;
  const auto crcs = stored(fs, block, 100);
  for (size_t i = 0; i < crcs.size(); ++i) EXPECT_EQ(crcs[i], block.value + i + 1);
  EXPECT_TRUE(fs.is_allocated(block));
}

TEST(Data, OnlyWhatTheEpochCoversIsCommitted) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 1, 1);
  fs.write(f, 5, 1, 2);
  fs.commit(f, 1);
  EXPECT_TRUE(fs->dirty(f));
  EXPECT_EQ(fs.attributes(f).size, 6 * kBlockSize);
  fs.crash();
  EXPECT_EQ(shape(fs, f, 0, 6), "data@0+1 hole@1+5");
  EXPECT_EQ(fs.attributes(f).size, kBlockSize);
}

TEST(Data, AContiguousAppendGrowsTheExtentItFollows) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  for (uint64_t i = 0; i < 200; ++i) {
    fs.write(f, i, 1);
    fs.commit(f);
  }
  EXPECT_EQ(shape(fs, f, 0, 200), "data@0+200");
  EXPECT_EQ(fs->space().free_units, (fs.reopen(), fs->space().free_units));
  EXPECT_EQ(shape(fs, f, 0, 200), "data@0+200");
}

TEST(Data, APunchSplitsAnExtentAndFreesItsMiddle) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 100);
  fs.commit(f);
  const uint64_t pending = fs->blocks().pending_blocks();
  ASSERT_TRUE(fs->remove_range(f, FileBlock{40}, 10).ok());
  EXPECT_EQ(shape(fs, f, 0, 100), "data@0+40 hole@40+10 data@50+50");
  EXPECT_EQ(fs.attributes(f).blocks, 90U);
  EXPECT_EQ(fs->blocks().pending_blocks(), pending);  // not before the commit
  fs.commit(f);
  EXPECT_EQ(fs->blocks().pending_blocks(), pending + 10);
  fs.crash();
  EXPECT_EQ(shape(fs, f, 0, 100), "data@0+40 hole@40+10 data@50+50");
}

TEST(Data, ATruncationIsTakenBackByACrashBeforeItsCommit) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 10);
  fs.commit(f);
  ASSERT_TRUE(fs->set_size(f, 5 * kBlockSize - 1).ok());
  EXPECT_EQ(shape(fs, f, 0, 10), "data@0+5 hole@5+5");
  fs.crash();
  EXPECT_EQ(fs.attributes(f).size, 10 * kBlockSize);
  EXPECT_EQ(shape(fs, f, 0, 10), "data@0+10");
  ASSERT_TRUE(fs->set_size(f, 5 * kBlockSize - 1).ok());
  fs.commit(f);
  fs.crash();
  EXPECT_EQ(fs.attributes(f).size, 5 * kBlockSize - 1);
  EXPECT_EQ(shape(fs, f, 0, 10), "data@0+5 hole@5+5");
}

TEST(Data, ATruncatedAndRewrittenFileHasOnlyItsNewBlocks) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 10);
  fs.commit(f);
  const BlockNo old = fs->map(f, FileBlock{0}, 1)->front().block;
  ASSERT_TRUE(fs->set_size(f, 0).ok());
  fs.write(f, 0, 2, 2);
  fs.commit(f, 2);
  fs.crash();
  EXPECT_EQ(shape(fs, f, 0, 10), "data@0+2 hole@2+8");
  EXPECT_NE(fs->map(f, FileBlock{0}, 1)->front().block, old);
  EXPECT_FALSE(fs.is_allocated(old));
}

TEST(Data, SeekFindsDataAndHoles) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 2, 2);
  fs.write(f, 6, 1);
  EXPECT_EQ(fs->seek_data(f, FileBlock{0})->value, 2U);
  EXPECT_EQ(fs->seek_data(f, FileBlock{3})->value, 3U);
  EXPECT_EQ(fs->seek_data(f, FileBlock{4})->value, 6U);
  EXPECT_EQ(error_of(fs->seek_data(f, FileBlock{7})), ENXIO);
  EXPECT_EQ(fs->seek_hole(f, FileBlock{0})->value, 0U);
  EXPECT_EQ(fs->seek_hole(f, FileBlock{2})->value, 4U);
  EXPECT_EQ(fs->seek_hole(f, FileBlock{6})->value, 7U);
  EXPECT_EQ(error_of(fs->seek_hole(f, FileBlock{7})), ENXIO);
}

TEST(Data, AFragmentedFileKeepsItsSlotsAndIsFreedInBoundedRecords) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  const uint64_t free = fs->space().free_blocks, units = fs->space().free_units;
  for (uint64_t i = 0; i < 3000; ++i) fs.write(f, i * 2, 1);
  fs.commit(f);
  fs.crash();
  EXPECT_EQ(fs.attributes(f).blocks, 3000U);
  for (uint64_t i = 0; i < 3000; i += 37) {
    EXPECT_EQ(shape(fs, f, i * 2, 2),
              "data@" + std::to_string(i * 2) + "+1 hole@" + std::to_string(i * 2 + 1) + "+1");
  }
  ASSERT_TRUE(fs->set_size(f, 1000 * kBlockSize).ok());
  fs.commit(f);
  fs.reopen();
  EXPECT_EQ(fs.attributes(f).blocks, 500U);
  ASSERT_TRUE(fs->reference(f).ok());
  EXPECT_EQ(fs.unlink("f"), 0);
  fs.forget_and_free(f);
  EXPECT_EQ(fs->space().free_blocks, free);
  EXPECT_EQ(fs->space().free_units, units);
}

TEST(Data, ManyPunchesIntoOneExtentCommitInBoundedRecords) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 2000);
  fs.commit(f);
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(fs->remove_range(f, FileBlock{i * 2}, 1).ok());
  fs.commit(f);
  fs.crash();
  EXPECT_EQ(fs.attributes(f).blocks, 1000U);
  EXPECT_EQ(shape(fs, f, 500, 4), "hole@500+1 data@501+1 hole@502+1 data@503+1");
}

TEST(Checksums, OfAnOverwriteStartAreZeroUntilItsEpochIsCommitted) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 2);
  fs.commit(f);
  const Piece piece = fs->map(f, FileBlock{0}, 1)->front();
  const uint64_t fences = fs.region().counters().fences;
  ASSERT_TRUE(fs->begin_overwrite(f, {&piece, 1}).ok());
  ASSERT_TRUE(fs->begin_overwrite(f, {&piece, 1}).ok());
  EXPECT_EQ(fs.region().counters().fences, fences + 1);
  EXPECT_EQ(stored(fs, piece.block, 1)[0], 0U);
  fs->learn_checksum(piece.block, 4711);  // a reader of the old bytes comes late
  EXPECT_EQ(stored(fs, piece.block, 1)[0], 0U);
  finish_overwrite(fs, f, piece.block, 42, 7);
  EXPECT_EQ(stored(fs, piece.block, 1)[0], 42U);  // pending: readers verify against it
  fs.commit(f, 6);
  const InodeId same = f;
  fs.crash();
  EXPECT_EQ(stored(fs, piece.block, 1)[0], 0U);  // its flush never came
  finish_overwrite(fs, same, piece.block, 42, 7);
  fs.commit(same, 7);
  fs.crash();
  EXPECT_EQ(stored(fs, piece.block, 1)[0], 42U);
}

TEST(Checksums, OfABlockOverwrittenAgainBelongToTheLaterEpoch) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 1);
  fs.commit(f);
  const Piece piece = fs->map(f, FileBlock{0}, 1)->front();
  ASSERT_TRUE(fs->begin_overwrite(f, {&piece, 1}).ok());
  finish_overwrite(fs, f, piece.block, 42, 2);
  ASSERT_TRUE(fs->begin_overwrite(f, {&piece, 1}).ok());
  fs.commit(f, 2);
  EXPECT_EQ(stored(fs, piece.block, 1)[0], 0U);
  finish_overwrite(fs, f, piece.block, 43, 3);
  fs.commit(f, 3);
  fs.crash();
  EXPECT_EQ(stored(fs, piece.block, 1)[0], 43U);
}

TEST(Checksums, OfAnEarlierEpochAreNotStoredOnceALaterWriteIsDone) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 1);
  fs.commit(f);
  const Piece piece = fs->map(f, FileBlock{0}, 1)->front();
  for (const uint64_t epoch : {2U, 3U}) {
    ASSERT_TRUE(fs->begin_overwrite(f, {&piece, 1}).ok());
    finish_overwrite(fs, f, piece.block, static_cast<uint32_t>(40 + epoch), epoch);
  }
  fs.commit(f, 2);
  fs.crash();
  EXPECT_EQ(stored(fs, piece.block, 1)[0], 0U);  // the bytes may be either write's
}

TEST(Data, ATruncationCutBetweenItsRecordsIsTakenUpAgain) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 10);
  fs.commit(f);
  fs.close();
  InodeImage image = load_image(fs.region(), f);
  image.size = 5 * kBlockSize;
  image.flags |= kTruncating;
  image.checksum = inode_checksum(image);
  fs.region().store(inode_offset(f), std::bit_cast<InodeWords>(image));
  fs.open();
  ASSERT_TRUE(fs->set_size(f, 10 * kBlockSize).ok());
  EXPECT_EQ(shape(fs, f, 0, 10), "data@0+5 hole@5+5");
  fs.commit(f);
  fs.crash();
  EXPECT_EQ(shape(fs, f, 0, 10), "data@0+5 hole@5+5");
  EXPECT_EQ(fs.attributes(f).blocks, 5U);
}

TEST(Checksums, OfNewBlocksNeverComeFromAnEarlierOwner) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 1);
  fs.commit(f);
  const Piece old = fs->map(f, FileBlock{0}, 1)->front();
  const auto again = fs->blocks().reserve(1, kDefaultPStream, std::nullopt);
  ASSERT_TRUE(again.ok());
  fs->learn_checksum(again->first, 99);  // as a dead file might have left it
  WriteResult result;
  result.added.push_back({FileBlock{1}, again->first, 1, kDefaultVStream});
  result.end_offset = 2 * kBlockSize;
  result.epoch = 2;
  ASSERT_TRUE(fs->finish_write(f, result).ok());
  EXPECT_EQ(stored(fs, again->first, 1)[0], 0U);
  fs->learn_checksum(again->first, 77);
  EXPECT_EQ(stored(fs, again->first, 1)[0], 77U);
  fs->learn_checksum(again->first, 78);
  EXPECT_EQ(stored(fs, again->first, 1)[0], 77U);
  EXPECT_EQ(stored(fs, old.block, 1)[0], old.block.value + 1);
}

TEST(Full, HeapFullOfFilesStillUnlinksAndIsUsableAgain) {
  Filesystem fs({.meta_bytes = 3 << 20, .data_blocks = 4096});
  std::vector<std::string> made;
  for (int i = 0;; ++i) {
    const std::string name = "f" + std::to_string(i);
    const auto file = fs->create(fs.root(), name, node(S_IFREG | 0600));
    if (!file) {
      EXPECT_EQ(file.error().code, ENOSPC);
      break;
    }
    made.push_back(name);
  }
  ASSERT_GT(made.size(), 100U);
  EXPECT_EQ(error_of(fs->create(fs.root(), "d", node(S_IFDIR))), ENOSPC);
  fs.reopen();
  for (const std::string& name : made) {
    const auto gone = fs->unlink(fs.root(), name);
    ASSERT_TRUE(gone.ok()) << gone.error().message();
    ASSERT_TRUE(fs->forget(*gone, 0));
    ASSERT_TRUE(fs->free_orphan(*gone).ok());
  }
  for (const std::string& name : made) fs.file(name);
}

TEST(Full, ADeviceFullOfDataGivesItsBlocksBackAfterTrims) {
  Filesystem fs({.meta_bytes = 8 << 20, .data_blocks = 8192});
  const InodeId f = fs.file("f");
  const uint64_t all = fs->space().free_blocks;
  fs.write(f, 0, all);
  fs.commit(f);
  EXPECT_EQ(error_of(fs->blocks().reserve(1, kDefaultPStream, std::nullopt)), ENOSPC);
  ASSERT_TRUE(fs->set_size(f, 0).ok());
  fs.commit(f);
  EXPECT_FALSE(fs->blocks().next_trim(1024).has_value());  // not released yet
  fs->blocks().release_up_to(fs->journal().last());
  uint64_t trimmed = 0;
  while (const auto run = fs->blocks().next_trim(1000)) {
    EXPECT_EQ(run->first.value / 1000, (run->first.value + run->count - 1) / 1000);
    Transaction tx(fs.region());
    tx.run(run->first, run->count, RunKind::kTrimmed);
    ASSERT_TRUE(fs->journal().commit(tx).ok());
    fs->blocks().trimmed(*run);
    trimmed += run->count;
  }
  EXPECT_EQ(trimmed, all);
  EXPECT_EQ(fs->blocks().free_blocks(), all);
  fs.write(f, 0, all);
  fs.commit(f);
}

TEST(Full, FreedButUntrimmedBlocksAreTrimmedAfterARemount) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 100);
  fs.commit(f);
  ASSERT_TRUE(fs->set_size(f, 0).ok());
  fs.commit(f);
  fs.crash();
  EXPECT_EQ(fs->blocks().pending_blocks(), 100U);
  const auto run = fs->blocks().next_trim(4096);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->count, 100U);
  // Its record is home before its owner says so: still nobody may have the blocks.
  Transaction tx(fs.region());
  tx.run(run->first, run->count, RunKind::kTrimmed);
  ASSERT_TRUE(fs->journal().commit(tx).ok());
  while (const auto other = fs->blocks().reserve(4096, kDefaultPStream, std::nullopt)) {
    EXPECT_TRUE(other->first.value + other->count <= run->first.value ||
                other->first.value >= run->first.value + run->count);
  }
  fs->blocks().trimmed(*run);
  EXPECT_EQ(fs->blocks().free_blocks(), 100U);
}

}  // namespace
}  // namespace streamfs::meta
