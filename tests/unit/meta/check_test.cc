#include "fuse-fs/meta/check.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/types.h"
#include "fuse-fs/meta/blob/acl.h"
#include "fuse-fs/meta/blob/xattr.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/record.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/region.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

// A closed filesystem with a bit of everything, for damaging.
class CheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = fs_.file("file");
    fs_.write(file_, 0, 20);
    fs_.commit(file_);
    directory_ = fs_.directory("directory");
    inner_ = fs_.file("inner", directory_);
    below_ = fs_.directory("below", directory_);
    deep_ = fs_.file("deep", below_);
    ASSERT_TRUE(fs_->set_xattr(file_, "user.a", "value", 0).ok());
    block_ = fs_->map(file_, FileBlock{0}, 1)->front().block;
    fs_.close();
    geometry_.emplace(*Geometry::from(super()));
  }

  Superblock super() { return *load_superblock(fs_.region(), false); }
  pmem::Region& region() { return fs_.region(); }

  CheckReport report(bool repair = false) {
    auto result = check(region(), super(), {.repair = repair});
    EXPECT_TRUE(result.ok());
    return result.ok() ? *result : CheckReport{};
  }
  void expect_problem(std::string_view text) {
    const CheckReport found = report();
    const bool there = std::ranges::any_of(
        found.problems, [&](const auto& problem) { return problem.text.find(text) != text.npos; });
    EXPECT_TRUE(there) << text;
    for (const auto& problem : found.problems) {
      EXPECT_FALSE(problem.repaired);
      if (!there) ADD_FAILURE() << "instead: " << problem.text;
    }
  }
  // Expects that the problem is found, repaired, and then gone.
  void expect_repairable(std::string_view text) {
    expect_problem(text);
    const CheckReport repaired = report(true);
    EXPECT_FALSE(repaired.sound());
    for (const auto& problem : repaired.problems) EXPECT_TRUE(problem.repaired) << problem.text;
    for (const auto& problem : report().problems) ADD_FAILURE() << "left: " << problem.text;
  }
  void expect_unrepairable(std::string_view text) {
    expect_problem(text);
    report(true);
    expect_problem(text);
  }

  InodeImage image(InodeId id) { return load_image(region(), id); }
  void store(InodeId id, InodeImage next) {
    next.checksum = inode_checksum(next);
    region().store(inode_offset(id), std::bit_cast<InodeWords>(next));
  }
  void set_bit(RegionKind kind, BlockNo block, bool value) {
    region().store_masked(geometry_->bitmap_word(kind, block.value / 64),
                          uint64_t{1} << block.value % 64, value ? ~uint64_t{0} : 0);
  }
  void set_kind(uint64_t unit, UnitKind kind) {
    const uint64_t at = geometry_->region_offset(RegionKind::kHeapMap, unit);
    const uint64_t shift = at % 8 * 8;
    region().store_masked(at / 8 * 8, uint64_t{0xff} << shift,
                          uint64_t{static_cast<uint8_t>(kind)} << shift);
  }
  // META offset of the slot that names `id` in a directory's first unit.
  uint64_t slot_of(InodeId directory, InodeId id) {
    for (uint64_t i = 0; i < kDirSlotsPerUnit; ++i) {
      const uint64_t at = image(directory).chain + sizeof(UnitHeader) + i * sizeof(DirSlot);
      if ((region().load(at) & 0xffff'ffff'ffff) == id.value) return at;
    }
    ADD_FAILURE() << "no such slot";
    return 0;
  }

  Filesystem fs_;
  std::optional<Geometry> geometry_;
  InodeId file_, directory_, inner_, below_, deep_;
  BlockNo block_;
};

TEST_F(CheckTest, ASoundFilesystemIsCountedAndHasNoProblems) {
  const CheckReport found = report();
  EXPECT_TRUE(found.sound());
  EXPECT_EQ(found.directories, 3U);
  EXPECT_EQ(found.files, 3U);
  EXPECT_EQ(found.blocks_in_use, 20U);
}

TEST_F(CheckTest, LeakedBlocksAreFreed) {
  for (uint64_t i = 0; i < 100; ++i) set_bit(RegionKind::kBlockBitmap, BlockNo{9000 + i}, true);
  expect_repairable("blocks 9000 to 9099 are marked allocated, but no file has them");
}

TEST_F(CheckTest, AnOwnedBlockMarkedFreeIsMarkedAgain) {
  set_bit(RegionKind::kBlockBitmap, block_, false);
  expect_repairable("belong to a file, but are not marked allocated");
}

TEST_F(CheckTest, ABlockIsNotAllocatedAndUntrimmedAtOnce) {
  set_bit(RegionKind::kUntrimmed, block_, true);
  expect_repairable("allocated and marked untrimmed");
}

TEST_F(CheckTest, ALostUnitIsFreed) {
  set_kind(geometry_->heap_units() - 1, UnitKind::kExtents);
  expect_repairable("is marked used, but nothing uses it");
}

TEST_F(CheckTest, AUsedUnitMarkedFreeIsMarkedAgain) {
  set_kind(*geometry_->unit_of(image(directory_).chain), UnitKind::kFree);
  expect_repairable("has another kind in the heap map");
}

TEST_F(CheckTest, WrongLinkCountsAreSetRight) {
  for (const InodeId id : {file_, directory_, below_}) {
    InodeImage wrong = image(id);
    wrong.nlink += 3;
    store(id, wrong);
  }
  expect_repairable("links instead of");
}

TEST_F(CheckTest, AnInodeWithoutANameGoesToLostAndFound) {
  region().store_word(slot_of(directory_, inner_), 0);
  region().store_word(slot_of(InodeId{super().root_inode}, file_), 0);
  expect_repairable("has no name");
  fs_.open();
  const auto folder = fs_->lookup(fs_.root(), "lost+found");
  ASSERT_TRUE(folder.ok());
  EXPECT_TRUE(fs_.exists("#" + std::to_string(inner_.value), folder->id));
  EXPECT_EQ(fs_.attributes(file_).blocks, 20U);
}

// The reserve for unlink and truncate is for this, too.
TEST(CheckFull, AnInodeWithoutANameIsNamedWhereOnlyTheReserveIsLeft) {
  Filesystem fs({.meta_bytes = 3 << 20});
  const InodeId lost = fs.file("lost");
  const std::string value(60'000, 'v');
  for (int i = 0;; ++i) {
    const auto made = fs->create(fs.root(), "f" + std::to_string(i), node(S_IFREG | 0644));
    if (!made.ok()) break;
    if (!fs->set_xattr(made->id, "user.large", value, 0).ok() &&
        !fs->set_xattr(made->id, "user.large", std::string(3000, 'v'), 0).ok()) {
      continue;  // on, until there is no inode either
    }
  }
  fs.close();
  const Superblock super = *load_superblock(fs.region(), false);
  InodeImage root = load_image(fs.region(), InodeId{super.root_inode});
  for (uint64_t i = 0; i < kDirSlotsPerUnit; ++i) {
    const uint64_t at = root.chain + sizeof(UnitHeader) + i * sizeof(DirSlot);
    if ((fs.region().load(at) & 0xffff'ffff'ffff) == lost.value) fs.region().store_word(at, 0);
  }
  const auto repaired = check(fs.region(), super, {.repair = true});
  ASSERT_TRUE(repaired.ok()) << repaired.error().message();
  EXPECT_FALSE(repaired->sound());
  EXPECT_TRUE(std::ranges::all_of(repaired->problems, &CheckReport::Problem::repaired));
  fs.open();
  const auto folder = fs->lookup(fs.root(), "lost+found");
  ASSERT_TRUE(folder.ok());
  EXPECT_TRUE(fs.exists("#" + std::to_string(lost.value), folder->id));
}

TEST_F(CheckTest, OfALostTreeOnlyTheTopIsNamedAgain) {
  region().store_word(slot_of(InodeId{super().root_inode}, directory_), 0);
  expect_repairable("has no name");
  fs_.open();
  const auto folder = fs_->lookup(fs_.root(), "lost+found");
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(fs_.names(folder->id), std::vector{"#" + std::to_string(directory_.value)});
  EXPECT_EQ(fs_->lookup(directory_, "..")->id, folder->id);
  EXPECT_TRUE(fs_.exists("deep", below_));
}

TEST_F(CheckTest, TheOrphanListNamesOnlyOrphans) {
  const uint64_t slot = super().orphan_head + sizeof(UnitHeader);
  region().store_word(slot + 8, file_.value);
  region().store_word(slot + 16, file_.value + 3000);
  expect_repairable("the orphan list names");
}

TEST_F(CheckTest, ADamagedSuperblockIsWrittenAgain) {
  region().store_word(kSuperOffset[1] + 64, 0xbad);
  expect_repairable("the superblock at offset 65536 is damaged");
}

TEST_F(CheckTest, ANameThatLeadsNowhereIsSaid) {
  region().store_word(inode_offset(inner_), 0);
  expect_unrepairable("/directory/inner: leads to inode");
}

TEST_F(CheckTest, ADamagedInodeIsSaidAndItsBlocksAreNotGivenAway) {
  region().store_word(inode_offset(file_) + 8, 0xbad);
  expect_unrepairable("/file (inode " + std::to_string(file_.value) + "): wrong checksum");
  fs_.open();
  EXPECT_TRUE(fs_.is_allocated(block_));
  const auto found = fs_->lookup(fs_.root(), "file");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, EIO);
  EXPECT_TRUE(fs_.exists("directory"));
  fs_.abandon();
}

TEST_F(CheckTest, AnInodeWithAnUnknownFlagIsRefused) {
  const InodeImage sound = image(file_);
  for (const int flag : {64, 256, 512, 1 << 14, 1 << 15}) {
    InodeImage wrong = sound;
    wrong.flags = static_cast<uint16_t>(sound.flags | flag);
    store(file_, wrong);
    expect_unrepairable("/file (inode " + std::to_string(file_.value) + "): unknown flags");
    fs_.open();
    EXPECT_EQ(fs_.lookup_error("file"), EIO) << flag;
    EXPECT_TRUE(fs_.is_allocated(block_));
    fs_.abandon();
  }
  store(file_, sound);
  EXPECT_TRUE(report().sound());
}

TEST_F(CheckTest, ADamagedSlotFailsOnlyItsOwnName) {
  region().store_word(slot_of(directory_, inner_) + 16, 0xbad);
  expect_problem("directory /directory/: a damaged slot");
  fs_.open();
  EXPECT_EQ(fs_.lookup_error("inner", directory_), EIO);
  EXPECT_TRUE(fs_.exists("below", directory_));
  EXPECT_EQ(fs_.lookup_error("other", directory_), ENOENT);
  EXPECT_EQ(fs_->rmdir(fs_.root(), "directory").error().code, ENOTEMPTY);
  fs_.abandon();
}

TEST_F(CheckTest, ABlockHasOneOwner) {
  InodeImage thief = image(inner_);
  const InodeImage owner = image(file_);
  thief.flags |= kInlineExtent0;
  std::ranges::copy(owner.inline_area, thief.inline_area);
  thief.blocks_vstream = owner.blocks_vstream;
  store(inner_, thief);
  expect_unrepairable("/directory/inner: 20 blocks from " + std::to_string(block_.value) +
                      " on have a second owner");
}

TEST_F(CheckTest, AWrongBlockCountIsSaid) {
  InodeImage wrong = image(file_);
  wrong.blocks_vstream += 1;
  store(file_, wrong);
  expect_problem("/file: has 20 blocks, but says 21");
}

TEST_F(CheckTest, AttributesMakeSense) {
  const InodeImage sound = image(file_);
  InodeImage wrong = sound;
  const auto words = inline_xattr_words(wrong);
  const XattrMap no_acl = {{std::string(kAccessAclKey), "x"}};
  const std::string bytes = encode_xattrs(no_acl);
  wrong.inline_xattr_bytes = bytes.size();
  std::memcpy(words.data(), bytes.data(), bytes.size());
  store(file_, wrong);
  expect_problem("/file: its access control list makes no sense");
  --wrong.inline_xattr_bytes;
  store(file_, wrong);
  expect_problem("/file: its extended attributes make no sense");
  wrong.inline_xattr_bytes = 65;
  store(file_, wrong);
  expect_problem("impossible inline attributes");
}

TEST_F(CheckTest, ADirectoryKnowsItsParent) {
  InodeImage wrong = image(below_);
  wrong.parent = super().root_inode;
  store(below_, wrong);
  expect_problem("/directory/below: its parent is said to be inode");
}

// ---- Rules that only damage breaks

TEST_F(CheckTest, AWrongBlockCountIsSetRight) {
  InodeImage wrong = image(file_);
  wrong.blocks_vstream += 1;
  store(file_, wrong);
  expect_repairable("/file: has 20 blocks, but says 21");
}

TEST_F(CheckTest, AWrongParentIsSetRight) {
  InodeImage wrong = image(below_);
  wrong.parent = super().root_inode;
  store(below_, wrong);
  wrong = image(InodeId{super().root_inode});
  wrong.parent = below_.value;
  store(InodeId{super().root_inode}, wrong);
  expect_repairable("/: its parent is said to be inode");
}

TEST_F(CheckTest, ADirectoryKnowsItsSize) {
  InodeImage wrong = image(directory_);
  wrong.size += kUnitSize;
  store(directory_, wrong);
  expect_repairable("/directory: says 4096 bytes instead of 0");
}

TEST_F(CheckTest, ALoopOfDirectoriesComesBackInLostAndFound) {
  // directory/below loses its place and becomes the parent of its own parent.
  const InodeId root{super().root_inode};
  const uint64_t top = slot_of(root, directory_), deep = slot_of(below_, deep_);
  std::array<uint64_t, sizeof(DirSlot) / kWordSize> entry{};
  std::memcpy(entry.data(), region().at(top), sizeof(DirSlot));
  region().store(deep, entry);
  region().store_word(top, 0);
  InodeImage up = image(directory_);
  up.parent = below_.value;
  store(directory_, up);
  expect_repairable("is a directory that only directories below it lead to");
  fs_.open();
  const auto folder = fs_->lookup(fs_.root(), "lost+found");
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(fs_.names(folder->id).size(), 2U) << "the loop, and the file whose name it took";
  const auto found = fs_->lookup(folder->id, "#" + std::to_string(directory_.value));
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(fs_.exists("below", directory_));
  EXPECT_FALSE(fs_.exists("directory", below_));
}

TEST_F(CheckTest, WhatATypeCannotHaveIsSaid) {
  InodeImage wrong = image(directory_);
  wrong.flags |= kTruncating;
  wrong.blocks_vstream = 3;
  wrong.symlink = 12345;
  store(directory_, wrong);
  expect_problem("/directory: has flags it cannot have");
  expect_problem("/directory: points to what it cannot have");
  expect_problem("/directory: has blocks, but is no file");
}

TEST_F(CheckTest, AttributesStandInOrderAndOnce) {
  InodeImage wrong = image(file_);
  const auto words = inline_xattr_words(wrong);
  const XattrMap one = {{"user.a", "1"}};
  const std::string bytes = encode_xattrs(one) + encode_xattrs(one);
  wrong.inline_xattr_bytes = bytes.size();
  std::memcpy(words.data(), bytes.data(), bytes.size());
  store(file_, wrong);
  expect_problem("/file: its extended attributes make no sense");
}

TEST_F(CheckTest, ANameHasItsOwnHash) {
  const uint64_t at = slot_of(directory_, inner_);
  std::array<uint64_t, sizeof(DirSlot) / kWordSize> words{};
  std::memcpy(words.data(), region().at(at), sizeof(DirSlot));
  DirSlot slot = std::bit_cast<DirSlot>(words);
  slot.name_hash ^= 1;
  slot.checksum = 0;
  slot.checksum = static_cast<uint16_t>(crc32c(std::as_bytes(std::span(&slot, 1))));
  region().store(at, std::bit_cast<decltype(words)>(slot));
  expect_unrepairable("/directory/inner: has another name's hash");
}

TEST_F(CheckTest, ANameExistsOnceInADirectory) {
  const uint64_t at = slot_of(directory_, inner_);
  std::array<uint64_t, sizeof(DirSlot) / kWordSize> words{};
  std::memcpy(words.data(), region().at(at), sizeof(DirSlot));
  region().store(at + 10 * sizeof(DirSlot), words);
  expect_problem("/directory/inner: the name exists twice");
  const CheckReport found = report();
  EXPECT_EQ(std::ranges::count_if(
                found.problems,
                [](const auto& each) { return each.text.find("twice") != std::string::npos; }),
            1);
}

TEST_F(CheckTest, SomethingWhereTheHeapMapSaysFreeIsCleared) {
  const uint64_t unit = geometry_->heap_units() - 1;
  region().store_word(geometry_->unit_offset(unit), 77);
  expect_repairable("heap unit " + std::to_string(unit) + " is marked free, but holds something");
}

TEST_F(CheckTest, InodesInAUnitMarkedFreeAreFoundWithoutAName) {
  // The unit's slot 0 is the root: it and all its neighbours are in a unit "free" or "extents".
  for (const UnitKind kind : {UnitKind::kFree, UnitKind::kExtents, UnitKind::kDirty}) {
    set_kind(*geometry_->unit_of(inode_offset(file_)), kind);
    expect_repairable("holds inodes, but the heap map says otherwise");
  }
}

TEST_F(CheckTest, ADirectoryUnitMarkedAsInodesIsMarkedAgain) {
  set_kind(*geometry_->unit_of(image(directory_).chain), UnitKind::kInodes);
  expect_repairable("/directory: its heap unit at offset");
}

// A slot of a directory unit that is marked as inodes is no inode.
TEST_F(CheckTest, AnOrphanInADirectoryUnitMarkedAsInodesDoesNotExist) {
  const uint64_t chain = image(directory_).chain;
  set_kind(*geometry_->unit_of(chain), UnitKind::kInodes);
  const InodeId inside{chain / kCellSize + 1};
  region().store_word(slot_offset(chain, 3), 1);  // in the place of that inode
  region().store_word(super().orphan_head + sizeof(UnitHeader), inside.value);
  expect_problem("the orphan list names inode " + std::to_string(inside.value) +
                 ", which does not exist");
  report(true);
  for (const auto& problem : report(true).problems) EXPECT_FALSE(problem.repaired) << problem.text;
}

TEST_F(CheckTest, VStreamsHaveNumbersAndNamesOfTheirOwn) {
  const auto put = [&](uint64_t slot, uint64_t number, const char* name) {
    const uint64_t at = geometry_->region_offset(RegionKind::kVStreams, slot * sizeof(VStreamSlot));
    std::array<uint64_t, 4> words{};
    std::strncpy(reinterpret_cast<char*>(words.data()), name, 31);
    region().store_word(at, number | 1 << 16);
    region().store(at + offsetof(VStreamSlot, name), words);
  };
  put(3, 9, "logs");
  put(5, 10, "tables");
  EXPECT_TRUE(report().sound());
  put(70, 9, "other");
  expect_repairable("vStream slot 70 has the number of another, 9");
  put(71, 11, "logs");
  expect_repairable("vStream slot 71 has the name of another, logs");
  put(72, 0, "none");
  expect_repairable("vStream slot 72 has no number");
}

TEST_F(CheckTest, ACleanSuperblockKnowsHowManyInodesThereAre) {
  Superblock wrong = super();
  EXPECT_EQ(wrong.clean_used_inodes, 6U);
  wrong.clean_used_inodes = 99;
  ASSERT_TRUE(store_superblock(region(), wrong).ok());
  expect_repairable("the superblock counts 99 inodes instead of 6");
  EXPECT_EQ(super().clean_used_inodes, 6U);
}

TEST_F(CheckTest, TheWatermarkIsASequenceNumber) {
  region().store_word(slot_of(directory_, inner_), 0);
  for (const uint64_t watermark : {kMaxSequence + 1, kSequenceMask, uint64_t{1} << 60}) {
    region().store_word(kWatermarkOffset, watermark);
    expect_unrepairable("the journal's watermark is impossible: nothing is repaired");
    expect_problem("has no name");
    EXPECT_EQ(region().load(kWatermarkOffset), watermark);
  }
  region().store_word(kWatermarkOffset, kMaxSequence / 2);
  expect_repairable("has no name");
}

TEST_F(CheckTest, GivesUpWhenItIsTold) {
  std::atomic<bool> cancelled{true};
  CheckOptions options;
  options.repair = true;
  options.cancelled = &cancelled;
  region().store_word(slot_of(directory_, inner_), 0);
  const auto stopped = check(region(), super(), options);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ECANCELED);
  expect_problem("has no name");
}

}  // namespace
}  // namespace streamfs::meta
