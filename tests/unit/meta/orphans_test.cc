// Inodes without a name: kept while open, listed for the next mount, freed at last.
#include "fuse-fs/meta/orphans.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "fuse-fs/meta/heap.h"
#include "fuse-fs/meta/inode.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

TEST(Orphans, AnOpenFileOutlivesItsNameAndIsFreedAfterTheLastForget) {
  Filesystem fs;
  const uint64_t before = fs->space().free_blocks;
  const InodeId f = fs.file("f");
  fs.write(f, 0, 10);
  fs.commit(f);
  EXPECT_EQ(fs.unlink("f"), 0);
  EXPECT_EQ(fs.attributes(f).nlink, 0U);
  EXPECT_EQ(fs->map(f, FileBlock{0}, 10)->size(), 1U);
  EXPECT_EQ(error_of(fs->free_orphan(f)), EBUSY);
  fs.forget_and_free(f);
  EXPECT_EQ(error_of(fs->attributes(f)), ESTALE);
  EXPECT_EQ(fs->space().free_blocks, before);
  EXPECT_EQ(error_of(fs->free_orphan(f)), 0);  // again: nothing left to do
}

TEST(Orphans, TheNextMountFindsAndFreesWhatACrashLeft) {
  Filesystem fs;
  const uint64_t before = fs->space().free_blocks;
  const InodeId f = fs.file("f"), d = fs.directory("d");
  fs.write(f, 0, 10);
  fs.commit(f);
  const auto unnamed = fs->create_unnamed(fs.root(), node(S_IFREG | 0600));
  ASSERT_TRUE(unnamed.ok());
  EXPECT_EQ(fs.unlink("f"), 0);
  EXPECT_EQ(error_of(fs->rmdir(fs.root(), "d")), 0);
  fs.crash();
  const auto left = fs->leftover_orphans();
  EXPECT_EQ(std::set(left.begin(), left.end()), (std::set{f, d, unnamed->id}));
  for (const InodeId id : left) EXPECT_EQ(error_of(fs->free_orphan(id)), 0);
  EXPECT_EQ(fs->space().free_blocks, before);
  fs.reopen();
  EXPECT_TRUE(fs->leftover_orphans().empty());
}

TEST(Orphans, AnUnnamedFileCanBeGivenAName) {
  Filesystem fs;
  const auto made = fs->create_unnamed(fs.root(), node(S_IFREG | 0600));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->nlink, 0U);
  AttributeChange told;
  told.mtime = told.ctime = Timestamp{1'234'567, 89};
  told.lazily = true;
  ASSERT_TRUE(fs->set_attributes(made->id, told).ok());
  ASSERT_TRUE(fs->link(made->id, fs.root(), "named").ok());
  fs.crash();
  EXPECT_TRUE(fs->leftover_orphans().empty());
  EXPECT_EQ(fs->lookup(fs.root(), "named")->mtime, *told.mtime);
  EXPECT_EQ(fs->lookup(fs.root(), "named")->nlink, 1U);
}

TEST(Orphans, MoreThanOneUnitOfThemIsKept) {
  Filesystem fs;
  for (int i = 0; i < 1200; ++i) fs.file("f" + std::to_string(i));
  for (int i = 0; i < 1200; ++i) EXPECT_EQ(fs.unlink("f" + std::to_string(i)), 0);
  fs.crash();
  EXPECT_EQ(fs->leftover_orphans().size(), 1200U);
  for (const InodeId id : fs->leftover_orphans()) EXPECT_EQ(error_of(fs->free_orphan(id)), 0);
  fs.reopen();
  EXPECT_TRUE(fs->leftover_orphans().empty());
}

uint64_t part_of(InodeId id) {
  return inode_unit(id) % Orphans::kParts;
}

TEST(Orphans, ThoseOfOnePartUseWhatTheOthersDoNotNeed) {
  Filesystem fs({.meta_bytes = 64 << 20});
  std::vector<InodeId> ids;
  const auto unlink = [&](uint64_t i) { ASSERT_EQ(fs.unlink(std::to_string(i)), 0); };
  for (uint64_t i = 0; i < 4096; ++i) ids.push_back(fs.file(std::to_string(i)));
  for (uint64_t i = 0; i < kOrphansPerUnit; ++i) unlink(i);
  for (uint64_t i = 0; i < kOrphansPerUnit; ++i) fs.forget_and_free(ids[i]);
  uint64_t orphans = 0;
  for (uint64_t i = kOrphansPerUnit; i < ids.size(); ++i) {
    if (part_of(ids[i]) == part_of(ids.back())) unlink(i), ++orphans;
  }
  EXPECT_GT(orphans, kOrphansPerUnit / 4);
  EXPECT_EQ(read_header(fs.region(), fs->geometry().super().orphan_head).next, 0U);
  fs.expect_sound();
}

TEST(Orphans, TheSlotsAtHandServeThoughTheRestOfTheListCannotBeRead) {
  Filesystem fs({.meta_bytes = 64 << 20});
  for (int i = 0; i < 1200; ++i) fs.file("f" + std::to_string(i));
  for (int i = 0; i < 1200; ++i) EXPECT_EQ(fs.unlink("f" + std::to_string(i)), 0);
  fs.crash();
  const uint64_t rest = read_header(fs.region(), fs->geometry().super().orphan_head).next;
  const uint64_t whole = fs.region().load(rest);
  fs.region().store_word(rest, 0);
  for (const InodeId id : fs->leftover_orphans()) EXPECT_EQ(error_of(fs->free_orphan(id)), 0);
  std::vector<InodeId> ids;
  for (uint64_t i = 0; i < 4096; ++i) ids.push_back(fs.file(std::to_string(i)));
  for (uint64_t i = 0; i < ids.size(); ++i) {
    if (part_of(ids[i]) != part_of(ids.back())) continue;
    EXPECT_EQ(fs.unlink(std::to_string(i)), 0) << i;
  }
  fs.region().store_word(rest, whole);
}

TEST(Orphans, AReusedSlotIsAnotherGeneration) {
  Filesystem fs;
  const auto first = fs->create(fs.root(), "a", node(S_IFREG));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(fs.unlink("a"), 0);
  fs.forget_and_free(first->id);
  fs->journal().checkpoint();
  for (int i = 0; i < 100; ++i) {
    const auto next = fs->create(fs.root(), "b" + std::to_string(i), node(S_IFREG));
    ASSERT_TRUE(next.ok());
    if (next->id != first->id) continue;
    EXPECT_NE(next->generation, first->generation);
    return;
  }
  FAIL() << "the slot was never used again";
}

}  // namespace
}  // namespace streamfs::meta
