// Unwritten extents: blocks that a file has before anything is written to them.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/format.h"
#include "fuse-fs/meta/image.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

// "held@first+length", "data@…" or "hole@…" for each piece; neighbours that are alike are one.
std::string layout(Filesystem& fs, InodeId id, uint64_t first, uint64_t count) {
  std::string out, kind;
  uint64_t start = first, end = first;
  const auto say = [&] {
    if (end == start) return;
    out += (out.empty() ? "" : " ") + kind + "@" + std::to_string(start) + "+" +
           std::to_string(end - start);
  };
  const auto pieces = fs->map(id, FileBlock{first}, count);
  for (const Piece& piece : *pieces) {
    const std::string now = piece.hole ? "hole" : piece.unwritten ? "held" : "data";
    if (now != kind) {
      say();
      start = piece.first.value;
      kind = now;
    }
    end = piece.first.value + piece.length;
  }
  say();
  return out;
}

void unwrite(Filesystem& fs, InodeId id, uint64_t first, uint64_t count) {
  auto room = fs->slot_room((2 * count) + 1);
  ASSERT_TRUE(room.ok());
  ASSERT_TRUE(fs->unwrite(id, FileBlock{first}, count, *room).ok());
}

uint64_t extents(Filesystem& fs, InodeId id) {
  return fs->map(id, FileBlock{0}, 1 << 20)->size();
}

TEST(Preallocated, BlocksAreTheFilesAtOnceAndAfterACrash) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  const uint64_t free = fs->space().free_blocks;
  fs.preallocate(f, 2, 5000);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(layout(fs, f, 0, 6000), "hole@0+2 held@2+5000 hole@5002+998");
    EXPECT_EQ(fs.attributes(f).blocks, 5000U);
    EXPECT_EQ(fs.attributes(f).size, 0U);
    EXPECT_EQ(fs->space().free_blocks, free - 5000);
    fs.crash();
  }
  ASSERT_TRUE(fs->set_size(f, 6000 * kBlockSize).ok());
  EXPECT_EQ(error_of(fs->seek_data(f, FileBlock{0})), ENXIO);
  EXPECT_EQ(fs->seek_hole(f, FileBlock{3})->value, 3U);
}

TEST(Preallocated, AWriteTakesItsBlocksAndNoOthers) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.preallocate(f, 0, 100);
  const uint64_t free = fs->space().free_blocks;
  const BlockNo block = fs->map(f, FileBlock{40}, 1)->front().block;
  fs.write(f, 40, 10);
  EXPECT_EQ(layout(fs, f, 0, 100), "held@0+40 data@40+10 held@50+50");
  EXPECT_EQ(fs->map(f, FileBlock{40}, 1)->front().block, block);
  EXPECT_EQ(fs.attributes(f).blocks, 100U);
  fs.commit(f);
  EXPECT_FALSE(fs->dirty(f));
  fs.crash();
  EXPECT_EQ(layout(fs, f, 0, 100), "held@0+40 data@40+10 held@50+50");
  EXPECT_EQ(fs->map(f, FileBlock{40}, 1)->front().block, block);
  EXPECT_EQ(fs.attributes(f).blocks, 100U);
  EXPECT_EQ(fs->space().free_blocks, free);
  fs.expect_sound();
}

TEST(Preallocated, ACrashBeforeTheCommitLeavesItUnwritten) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.preallocate(f, 0, 10);
  fs.write(f, 3, 4, 7);
  fs.commit(f, 6);
  fs.crash();
  EXPECT_EQ(layout(fs, f, 0, 10), "held@0+10");
  fs.expect_sound();
}

// An uncommitted write is dropped; the blocks belong to the committed extent.
TEST(Preallocated, BlocksOfAWriteThatIsTakenAwayAreFreedOnce) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  const uint64_t free = fs->space().free_blocks;
  fs.preallocate(f, 0, 30);
  fs.write(f, 0, 30);
  ASSERT_TRUE(fs->remove_range(f, FileBlock{10}, 5).ok());
  EXPECT_EQ(fs.attributes(f).blocks, 25U);
  fs.write(f, 12, 1);
  fs.commit(f);
  EXPECT_EQ(layout(fs, f, 0, 30), "data@0+10 hole@10+2 data@12+1 hole@13+2 data@15+15");
  EXPECT_EQ(fs.attributes(f).blocks, 26U);
  fs.write(f, 13, 1);
  ASSERT_TRUE(fs->set_size(f, 0).ok());
  fs.commit(f);
  EXPECT_EQ(fs.attributes(f).blocks, 0U);
  EXPECT_EQ(fs->space().free_blocks, free);
  fs.preallocate(f, 0, 4);
  fs.write(f, 1, 1);
  EXPECT_EQ(fs.unlink("f"), 0);
  fs.forget_and_free(f);
  EXPECT_EQ(fs->space().free_blocks, free);
  fs.expect_sound();
}

TEST(Preallocated, ATruncationFreesWhatIsPastTheEnd) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.preallocate(f, 0, 3000);
  ASSERT_TRUE(fs->set_size(f, 10 * kBlockSize).ok());
  fs.commit(f);
  EXPECT_EQ(layout(fs, f, 0, 3000), "held@0+3000") << "longer than it was";
  ASSERT_TRUE(fs->set_size(f, 4 * kBlockSize).ok());
  fs.commit(f);
  fs.crash();
  EXPECT_EQ(layout(fs, f, 0, 3000), "held@0+4 hole@4+2996");
  fs.expect_sound();
}

TEST(Preallocated, WhatIsWrittenInAnyOrderIsOneExtentInTheEnd) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.preallocate(f, 0, 600);
  std::vector<uint64_t> order(600);
  for (uint64_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, std::mt19937_64(3));
  for (const uint64_t at : order) {
    fs.write(f, at, 1);
    if (at % 3 == 0) fs.commit(f);
  }
  fs.commit(f);
  EXPECT_EQ(extents(fs, f), 2U) << "it, and the hole behind";
  fs.reopen();
  EXPECT_EQ(layout(fs, f, 0, 600), "data@0+600");
}

TEST(Preallocated, WrittenBlocksBecomeUnwrittenAndStay) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 3000);
  EXPECT_EQ(error_of([&] {
              auto room = fs->slot_room(3);
              return fs->unwrite(f, FileBlock{1}, 1, *room);
            }()),
            EBUSY);
  fs.commit(f);
  const uint64_t free = fs->space().free_blocks;
  const BlockNo block = fs->map(f, FileBlock{7}, 1)->front().block;
  unwrite(fs, f, 5, 2000);
  EXPECT_EQ(layout(fs, f, 0, 3000), "data@0+5 held@5+2000 data@2005+995");
  fs.crash();
  EXPECT_EQ(layout(fs, f, 0, 3000), "data@0+5 held@5+2000 data@2005+995");
  EXPECT_EQ(fs->map(f, FileBlock{7}, 1)->front().block, block);
  EXPECT_EQ(fs->space().free_blocks, free);
  fs.write(f, 6, 1);
  fs.commit(f);
  EXPECT_EQ(layout(fs, f, 0, 10), "data@0+5 held@5+1 data@6+1 held@7+3");
  fs.expect_sound();
}

// A store of a commit of several records is the last one: no later one reaches META.
class CutAmidACommit : public ::testing::Test {
 protected:
  // The flags of the file's inode once half of a commit is in META.
  void leave_as_cut(uint16_t flag, uint64_t size) {
    fs_.close();
    InodeImage image = load_image(fs_.region(), file_);
    image.size = size;
    image.flags |= flag;
    image.checksum = inode_checksum(image);
    fs_.region().store(inode_offset(file_), std::bit_cast<InodeWords>(image));
    fs_.open();
  }
  Filesystem fs_;
  InodeId file_ = fs_.file("f");
};

TEST_F(CutAmidACommit, AnExtensionKeepsWhatWasPreallocatedAndShowsNoneOfItsData) {
  fs_.preallocate(file_, 0, 20);
  fs_.write(file_, 4, 6);
  fs_.commit(file_);
  leave_as_cut(kExtending, 6 * kBlockSize);
  EXPECT_EQ(layout(fs_, file_, 0, 20), "held@0+4 data@4+2 held@6+14");
  fs_.crash();
  EXPECT_EQ(layout(fs_, file_, 0, 20), "held@0+4 data@4+2 held@6+14");
  EXPECT_EQ(load_image(fs_.region(), file_).flags & kExtending, 0);
  fs_.expect_sound();
}

TEST_F(CutAmidACommit, ATruncationFreesWhatWasPreallocated) {
  fs_.preallocate(file_, 0, 20);
  leave_as_cut(kTruncating, 6 * kBlockSize);
  EXPECT_EQ(layout(fs_, file_, 0, 20), "held@0+6 hole@6+14");
  fs_.commit(file_);
  fs_.expect_sound();
}

// Every second block of the range, in one commit: more than one record.
TEST(Preallocated, ACommitOfSeveralRecordsLeavesNoMark) {
  Filesystem fs;
  const InodeId f = fs.file("f");
  fs.preallocate(f, 0, 1000);
  for (uint64_t at = 0; at < 400; at += 2) fs.write(f, at, 1);
  fs.commit(f);
  fs.crash();
  EXPECT_EQ(load_image(fs.region(), f).flags & (kExtending | kTruncating), 0);
  EXPECT_EQ(extents(fs, f), 401U);
  EXPECT_EQ(fs.attributes(f).blocks, 1000U);
  fs.expect_sound();
}

// META's last unit but the reserve is gone, and every write splits an extent.
TEST(Preallocated, WritesThatSplitNeverTakeTheReserve) {
  Filesystem fs({.meta_bytes = 3 << 20, .data_blocks = 8192});
  const InodeId f = fs.file("f");
  fs.preallocate(f, 0, 4000);
  for (int i = 0;; ++i) {
    const auto made = fs->create(fs.root(), "n" + std::to_string(i), node(S_IFREG | 0644));
    if (!made.ok()) break;
  }
  const uint64_t units = fs->space().free_units;
  uint64_t written = 0;
  for (uint64_t at = 1; at < 4000; at += 2) {
    if (!fs->slot_room(3).ok()) break;
    fs.write(f, at, 1);
    fs.commit(f);
    ++written;
  }
  EXPECT_EQ(fs->space().free_units, units);
  EXPECT_EQ(written, 0U);
  // Whole extents need no room.
  const Piece whole = fs->map(f, FileBlock{0}, kMaxUnwrittenBlocks)->front();
  ASSERT_EQ(whole.length, kMaxUnwrittenBlocks);
  WriteResult result;
  result.epoch = 1;
  result.added.push_back({whole.first, whole.block, whole.length, {}});
  ASSERT_TRUE(fs->finish_write(f, result).ok());
  fs.commit(f);
  EXPECT_EQ(fs->space().free_units, units);
  EXPECT_EQ(layout(fs, f, 0, 4000), "data@0+1024 held@1024+2976");
  fs.expect_sound();
}

// Against a list of what each block is.
TEST(Preallocated, AnyOrderOfOperationsLeavesWhatItShould) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Filesystem fs;
    const InodeId f = fs.file("f");
    std::mt19937_64 random(seed);
    constexpr uint64_t kBlocks = 300;
    std::string now(kBlocks, '.');
    uint64_t epoch = 1;
    for (int step = 0; step < 250; ++step) {
      const uint64_t first = random() % kBlocks;
      const uint64_t count = 1 + random() % std::min<uint64_t>(kBlocks - first, 40);
      const auto fill = [&](char with, bool only_holes) {
        for (uint64_t i = first; i < first + count; ++i)
          if (!only_holes || now[i] == '.') now[i] = with;
      };
      switch (random() % 8) {
        case 0:
          fs.preallocate(f, first, count);
          fill('u', true);
          break;
        case 1:
          ASSERT_TRUE(fs->remove_range(f, FileBlock{first}, count).ok());
          fill('.', false);
          break;
        case 2:
          fs.commit(f, epoch);
          unwrite(fs, f, first, count);
          for (uint64_t i = first; i < first + count; ++i) now[i] = now[i] == '.' ? '.' : 'u';
          break;
        case 3:
          fs.commit(f, epoch++);
          break;
        default:
          fs.write(f, first, count, epoch);
          fill('w', false);
      }
      if (step % 50 == 49) {
        fs.commit(f, epoch++);
        fs.crash();
      }
      std::string found;
      const auto pieces = fs->map(f, FileBlock{0}, kBlocks);
      for (const Piece& piece : *pieces)
        found += std::string(piece.length, piece.hole ? '.' : piece.unwritten ? 'u' : 'w');
      ASSERT_EQ(found, now) << "seed " << seed << ", step " << step;
      const auto holes = static_cast<uint64_t>(std::ranges::count(now, '.'));
      ASSERT_EQ(fs.attributes(f).blocks, kBlocks - holes) << "seed " << seed << ", step " << step;
    }
    fs.commit(f, epoch);
    fs.expect_sound();
  }
}

// ---- The format version

TEST(FormatVersion, IsRaisedWhereItIsLower) {
  auto region = pmem::make_memory_region(4 << 20, pmem::MetaClass::kPersistent);
  FormatOptions options;
  options.data_blocks = 4096;
  options.version = kOldestVersion;
  const auto planned = plan_format(region->size(), pmem::MetaClass::kPersistent, options);
  ASSERT_TRUE(planned.ok());
  ASSERT_TRUE(format(*region, *planned, {1, 0}).ok());
  ManualClock clock;
  for (const uint32_t before : {kOldestVersion, kUnwrittenVersion}) {
    const auto super = load_superblock(*region, false);
    ASSERT_TRUE(super.ok());
    EXPECT_EQ(super->version, before);
    auto engine = Engine::open(*region, *super, clock, {.start_background = false});
    ASSERT_TRUE(engine.ok());
    ASSERT_TRUE((*engine)->raise_version(kUnwrittenVersion).ok());
    EXPECT_EQ((*engine)->superblock().version, kUnwrittenVersion);
  }
}

}  // namespace
}  // namespace streamfs::meta
