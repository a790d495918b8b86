// Heap units that held inodes: back with the heap once their inodes are gone, and no sooner.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/types.h"
#include "fuse-fs/meta/engine.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kManyFiles = 1000;
constexpr uint64_t kUnitsKept = 6;  // 64 slots, the unit of the survivors, the one in use

class InodeUnits : public ::testing::Test {
 protected:
  void fill() {
    directory_ = fs_.directory("many");
    for (uint64_t i = 0; i < kManyFiles; ++i) ids_.push_back(fs_.file(name(i), directory_));
  }
  void remove(uint64_t i) {
    ASSERT_EQ(fs_.unlink(name(i), directory_), 0);
    fs_.forget_and_free(ids_[i]);
  }
  static std::string name(uint64_t i) { return "file-" + std::to_string(i); }
  uint64_t free_units() { return fs_->space().free_units; }

  Filesystem fs_{{.meta_bytes = 3 << 20}};
  InodeId directory_;
  std::vector<InodeId> ids_;
};

TEST_F(InodeUnits, ComeBackWhenTheirFilesAreGone) {
  const uint64_t before = free_units();
  fill();
  const uint64_t directory_units = kManyFiles / 63 + 1;
  EXPECT_LE(free_units(), before - kManyFiles / 16 - kManyFiles / 63);
  for (uint64_t i = 0; i < kManyFiles; ++i) remove(i);
  EXPECT_GE(free_units() + directory_units + kUnitsKept, before);
  fs_.reopen();
  EXPECT_GE(free_units() + directory_units + kUnitsKept, before);
}

TEST_F(InodeUnits, ComeBackThoughTheirInodesAreFromAnEarlierMount) {
  const uint64_t before = free_units();
  fill();
  for (const bool clean : {true, false}) {
    clean ? fs_.reopen() : fs_.crash();
    for (uint64_t i = clean ? 0 : kManyFiles / 2; i < (clean ? kManyFiles / 2 : kManyFiles); ++i) {
      ASSERT_TRUE(fs_->lookup(directory_, name(i)).ok());
      remove(i);
    }
  }
  EXPECT_GE(free_units() + kManyFiles / 63 + 1 + 2 * kUnitsKept, before);
  fs_.expect_sound();
}

TEST_F(InodeUnits, StayForOneFileThatSurvives) {
  fill();
  for (uint64_t i = 0; i < kManyFiles; ++i)
    if (i % 100 != 50) remove(i);
  fs_->journal().checkpoint();
  // New content of freed units does not touch the files between.
  for (int i = 0; i < 300; ++i)
    fs_.file("new-" + std::to_string(i), fs_.directory("d" + std::to_string(i)));
  fs_.crash();
  for (uint64_t i = 50; i < kManyFiles; i += 100) {
    EXPECT_EQ(fs_->lookup(directory_, name(i))->id, ids_[i]);
  }
  fs_.expect_sound();
}

TEST_F(InodeUnits, AFileMadeAndRemovedOverAndOverTakesNoneAndCostsOneFence) {
  fill();
  for (uint64_t i = 0; i < 200; ++i) remove(i);
  fs_->journal().checkpoint();
  const uint64_t units = free_units();
  const uint64_t fences = fs_.region().counters().fences;
  for (int i = 0; i < 100; ++i) {
    const InodeId id = fs_.file("again", directory_);
    ASSERT_EQ(fs_.unlink("again", directory_), 0);
    fs_.forget_and_free(id);
  }
  EXPECT_GE(free_units(), units);  // one may come back: those kept are not the ones in hand
  EXPECT_EQ(fs_.region().counters().fences - fences, 300U);
}

TEST_F(InodeUnits, AnInodeOfAUnitThatCameBackHasAnotherGeneration) {
  fill();
  const Attributes first = fs_.attributes(ids_[500]);
  for (uint64_t i = 0; i < kManyFiles; ++i) remove(i);
  fs_->journal().checkpoint();
  bool met = false;
  for (uint64_t i = 0; !met; ++i) {
    const auto made = fs_->create(fs_.root(), name(i), node(S_IFREG | 0600));
    ASSERT_TRUE(made.ok());
    met = made->id == first.id;
    EXPECT_TRUE(!met || made->generation != first.generation);
  }
}

TEST_F(InodeUnits, ACreateThatFailsLeavesItsSlotAsItWas) {
  fill();
  const InodeId empty = fs_.directory("empty");
  for (uint64_t i = 0; fs_->create(fs_.root(), name(i), node(S_IFREG | 0600)).ok();) ++i;
  for (uint64_t i = 0; i < kManyFiles; i += 100) remove(i);
  fs_->journal().checkpoint();
  const uint64_t words = fs_.region().counters().words_programmed;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(error_of(fs_->create(empty, "x", node(S_IFREG | 0600))), ENOSPC);
  }
  EXPECT_EQ(fs_.region().counters().words_programmed, words);
  EXPECT_TRUE(fs_->create(directory_, "x", node(S_IFREG | 0600)).ok());
}

TEST_F(InodeUnits, ServeDirectoriesOnceNothingElseIsLeft) {
  fill();
  for (int i = 0;; ++i) {
    const auto made = fs_->create(fs_.root(), "dir-" + std::to_string(i), node(S_IFDIR | 0755));
    if (!made.ok() || !fs_->create(made->id, "x", node(S_IFREG | 0600)).ok()) break;
  }
  for (uint64_t i = 0; i < kManyFiles; ++i) remove(i);
  int more = 0;
  for (;; ++more) {
    const auto made = fs_->create(fs_.root(), "more-" + std::to_string(more), node(S_IFDIR | 0755));
    if (!made.ok() || !fs_->create(made->id, "x", node(S_IFREG | 0600)).ok()) break;
  }
  EXPECT_GT(more, static_cast<int>(kManyFiles / 16 - 20));
  fs_.expect_sound();
}

// Another thread makes the first file, or this one does.
void make_first(Filesystem& fs, bool another_thread) {
  const auto make = [&] { fs.file("first"); };
  if (another_thread)
    std::thread(make).join();
  else
    make();
}

uint64_t files_that_fit(bool another_thread) {
  Filesystem fs{{.meta_bytes = 3 << 20}};
  make_first(fs, another_thread);
  for (uint64_t made = 1;; ++made) {
    const auto next = fs->create(fs.root(), std::to_string(made), node(S_IFREG | 0600));
    if (!next.ok()) return made;
  }
}

TEST(InodeSlots, InAnotherThreadsHandServeOnceNothingElseIsLeft) {
  EXPECT_EQ(files_that_fit(true), files_that_fit(false));
}

// Each directory's first name takes a unit: the last one is that, and not for the directory itself.
TEST(InodeSlots, InAnotherThreadsHandServeBeforeTheLastUnitDoes) {
  for (uint64_t files = 0; files < kInodesPerUnit; ++files) {
    Filesystem fs{{.meta_bytes = 3 << 20}};
    make_first(fs, true);
    for (uint64_t i = 0; i < files; ++i) fs.file("file-" + std::to_string(i));
    for (int i = 0;; ++i) {
      const auto last = fs->create(fs.root(), std::to_string(i), node(S_IFDIR | 0755));
      ASSERT_TRUE(last.ok());
      if (fs->create(last->id, "x", node(S_IFREG | 0600)).ok()) continue;
      EXPECT_NE(last->id.value % kInodesPerUnit, 0U) << "took a unit, after " << files;
      break;
    }
  }
}

}  // namespace
}  // namespace streamfs::meta
