// META kept twice: damage in one copy is read past and mended; damage in both stays where it is.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/check.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/inode.h"
#include "fuse-fs/meta/layout.h"
#include "fuse-fs/meta/superblock.h"
#include "pmem/mirror_region.h"
#include "pmem/region.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

class Mirrored : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs_.directory("d");
    plain_ = fs_.file("plain", directory_);
    long_name_ = fs_.file(std::string(200, 'n'), directory_);
    extents_ = fs_.file("extents");
    for (uint64_t i = 0; i < 40; ++i) fs_.write(extents_, 2 * i, 1);
    fs_.commit(extents_);
    ASSERT_TRUE(fs_->set_xattr(plain_, "user.large", std::string(3000, 'q'), 0).ok());
    CreateRequest request = node(S_IFLNK | 0777);
    request.symlink_target = target_;
    symlink_ = fs_->create(fs_.root(), "symlink", request)->id;
    fs_.reopen();
  }

  const pmem::MirrorRegion& mirror() {
    return dynamic_cast<const pmem::MirrorRegion&>(fs_.region());
  }
  std::byte* bytes(size_t copy, uint64_t offset) {
    return const_cast<std::byte*>(mirror().copy(copy).at(offset));
  }
  void flip(size_t copy, uint64_t offset) { *bytes(copy, offset) ^= std::byte{5}; }
  void wipe(size_t copy, uint64_t offset, uint64_t length) {
    std::fill_n(bytes(copy, offset), length, std::byte{0});
  }
  uint64_t mended() { return fs_.region().counters().mended; }

  uint64_t inode_at(InodeId id) { return id.value * kCellSize; }
  uint64_t chain_of(InodeId id) { return load_image(fs_.region(), id).chain; }
  // Everything there is can be read.
  void expect_all_readable() {
    EXPECT_EQ(fs_.attributes(plain_).size, 0U);
    EXPECT_EQ(fs_.lookup_error("plain", directory_), 0);
    EXPECT_EQ(fs_.lookup_error(std::string(200, 'n'), directory_), 0);
    EXPECT_EQ(fs_.names(directory_).size(), 2U);
    EXPECT_EQ(fs_->get_xattr(plain_, "user.large").value(), std::string(3000, 'q'));
    EXPECT_EQ(fs_->read_symlink(symlink_).value(), target_);
    const auto pieces = fs_->map(extents_, FileBlock{0}, 80);
    ASSERT_TRUE(pieces.ok()) << pieces.error().message();
    EXPECT_EQ(pieces->size(), 80U) << "data and holes by turns";
  }
  void expect_all_verified() {
    for (const InodeId id : fs_->inodes_after(InodeId{0}, 1000)) {
      EXPECT_TRUE(fs_->verify(id).ok()) << id.value;
    }
  }

  const std::string target_ = "elsewhere/" + std::string(1000, 'z');
  Filesystem fs_{Size{16 << 20, 1 << 16, true}};
  InodeId directory_, plain_, long_name_, extents_, symlink_;
};

// GetParam(): the copy that is damaged.
class EitherCopy : public Mirrored, public ::testing::WithParamInterface<size_t> {};

TEST_P(EitherCopy, DamageInOneCopyIsMendedFromTheOther) {
  const size_t copy = GetParam();
  const uint64_t names = chain_of(directory_), slots = chain_of(extents_);
  const std::vector<std::function<void()>> damages{
      [&] { flip(copy, inode_at(plain_) + 20); },
      [&] { wipe(copy, inode_at(plain_), kCellSize); },
      [&] { flip(copy, inode_at(extents_) + 16 * kWordSize + 9); },  // an inline extent
      [&] { flip(copy, names + sizeof(UnitHeader) + 20); },
      [&] { wipe(copy, names + sizeof(UnitHeader), sizeof(DirSlot)); },
      [&] { flip(copy, names); },  // the unit's owner
      [&] { wipe(copy, names, kUnitSize); },
      [&] { flip(copy, slots + sizeof(UnitHeader) + 9); },
      [&] { wipe(copy, slots, kUnitSize); },
      [&] { flip(copy, load_image(mirror().copy(0), plain_).xattr + sizeof(UnitHeader) + 100); },
      [&] { flip(copy, load_image(mirror().copy(0), symlink_).symlink + 16); },  // its length
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    SCOPED_TRACE(i);
    const uint64_t before = mended();
    damages[i]();
    fs_.crash();  // nothing is remembered
    expect_all_readable();
    expect_all_verified();
    EXPECT_GT(mended(), before);
    const uint64_t after = mended();
    fs_.crash();
    expect_all_readable();
    expect_all_verified();
    EXPECT_EQ(mended(), after) << "and is whole now";
  }
  fs_.close();
  for (size_t each = 0; each < 2; ++each) {
    auto& alone = const_cast<pmem::Region&>(mirror().copy(each));
    const auto report = check(alone, load_superblock(alone, false).value(), {});
    for (const auto& problem : report->problems) ADD_FAILURE() << each << ": " << problem.text;
  }
}

TEST_P(EitherCopy, AReadMendsWhatItMeetsInTheFirstAndAScrubWhatIsInTheSecond) {
  flip(GetParam(), inode_at(plain_) + 20);
  fs_.crash();
  EXPECT_EQ(fs_.attributes(plain_).size, 0U);
  EXPECT_EQ(mended(), GetParam() == 0 ? 1U : 0U);
  EXPECT_TRUE(fs_->verify(plain_).ok());
  EXPECT_EQ(mended(), 1U);
}

INSTANTIATE_TEST_SUITE_P(First, EitherCopy, ::testing::Values(0));
INSTANTIATE_TEST_SUITE_P(Second, EitherCopy, ::testing::Values(1));

TEST_F(Mirrored, DamageInBothIsAnErrorOfThatObjectOnly) {
  for (const size_t copy : {0U, 1U}) flip(copy, inode_at(plain_) + 20);
  fs_.crash();
  EXPECT_EQ(fs_->attributes(plain_).error().code, EIO);
  EXPECT_EQ(fs_.lookup_error("plain", directory_), EIO);
  EXPECT_EQ(fs_.lookup_error(std::string(200, 'n'), directory_), 0);
  EXPECT_EQ(fs_->read_symlink(symlink_).value(), target_);
  EXPECT_EQ(fs_->verify(plain_).error().code, EIO);
  EXPECT_EQ(mended(), 0U);
  fs_.abandon();
}

TEST_F(Mirrored, AnOperationIsStillOneFence) {
  const auto cost_of = [&](const std::function<bool()>& operation) {
    fs_.clock().advance();
    const pmem::Counters before = fs_.region().counters();
    EXPECT_TRUE(operation());
    const pmem::Counters after = fs_.region().counters();
    EXPECT_EQ(after.fences - before.fences, 1U);
    for (const size_t copy : {0U, 1U}) {
      EXPECT_GE(mirror().copy(copy).counters().fences, after.fences);
    }
    return after.lines_flushed - before.lines_flushed;
  };
  EXPECT_LE(cost_of([&] { return fs_->create(directory_, "new", node(S_IFREG | 0644)).ok(); }), 5U);
  EXPECT_LE(cost_of([&] { return fs_->rename(directory_, "new", fs_.root(), "n", 0).ok(); }), 5U);
  EXPECT_LE(cost_of([&] { return fs_->unlink(fs_.root(), "n").ok(); }), 3U);
}

TEST_F(Mirrored, WhatHasNoChecksumIsHeldAgainstTheOtherCopyAndRepaired) {
  EXPECT_TRUE(fs_->verify_maps().ok());
  flip(1, fs_->geometry().region_offset(RegionKind::kBlockBitmap, 1000));
  flip(0, fs_->geometry().region_offset(RegionKind::kHeapMap, 900));
  const Result<void> maps = fs_->verify_maps();
  ASSERT_FALSE(maps.ok());
  EXPECT_NE(maps.error().context.find("1 of the block bitmap, 1 of the heap map"),
            std::string::npos)
      << maps.error().context;
  fs_->journal().checkpoint();
  fs_.abandon();
  flip(1, inode_at(plain_) + 20);
  const Superblock super = load_superblock(fs_.region(), false).value();
  const auto repaired = check(fs_.region(), super, {.repair = true});
  EXPECT_FALSE(repaired->sound());
  EXPECT_TRUE(std::ranges::all_of(repaired->problems, &CheckReport::Problem::repaired));
  EXPECT_EQ(mended(), 1U);
  for (size_t each = 0; each < 2; ++each) {
    auto& alone = const_cast<pmem::Region&>(mirror().copy(each));
    EXPECT_TRUE(check(alone, load_superblock(alone, false).value(), {})->sound()) << each;
  }
}

TEST_F(Mirrored, ADataChecksumIsMendedOnceTheDataHasProvedIt) {
  const BlockNo block = fs_->map(extents_, FileBlock{0}, 1)->front().block;
  uint32_t right = 0;
  fs_->checksums(block, {&right, 1});
  ASSERT_NE(right, 0U);
  flip(0, fs_->geometry().checksum_offset(block));
  EXPECT_FALSE(fs_->mend_checksum(block, right + 1));
  EXPECT_TRUE(fs_->mend_checksum(block, right));
  uint32_t stored = 0;
  fs_->checksums(block, {&stored, 1});
  EXPECT_EQ(stored, right);
}

// A single store announces an overwrite in both copies, also if one of them holds the zero already.
TEST_F(Mirrored, AnOverwriteIsAnnouncedInBothCopies) {
  const auto piece = fs_->map(extents_, FileBlock{0}, 1)->front();
  const uint64_t at = fs_->geometry().checksum_offset(piece.block);
  ASSERT_NE(fs_.region().load(at / kWordSize * kWordSize), 0U);
  wipe(0, at, sizeof(uint32_t));
  ASSERT_TRUE(fs_->begin_overwrite(extents_, std::vector{piece}).ok());
  uint32_t stored = 1;
  std::memcpy(&stored, mirror().copy(1).at(at), sizeof stored);
  EXPECT_EQ(stored, 0U);
}

}  // namespace
}  // namespace streamfs::meta
