// The cost of an operation on its critical path, by the region's own counters.
#include <cstdint>

#include "pmem/region.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

class Cost : public ::testing::Test {
 protected:
  void SetUp() override {
    parent_ = fs_.directory("parent");
    other_ = fs_.directory("other");
    for (const InodeId directory : {parent_, other_}) {
      fs_.file("first", directory);  // units exist: one create in 16, or 63, pays for a new one
    }
    fs_->journal().checkpoint();
  }

  template <typename Operation>
  void expect_cost(uint64_t lines_max, Operation&& operation) {
    fs_.clock().advance();
    const pmem::Counters before = fs_.region().counters();
    EXPECT_TRUE(operation().ok());
    const pmem::Counters after = fs_.region().counters();
    EXPECT_EQ(after.fences - before.fences, 1U);
    EXPECT_LE(after.lines_flushed - before.lines_flushed, lines_max);
  }

  Filesystem fs_;
  InodeId parent_, other_;
};

constexpr std::string_view kLongest = "a-name-of-forty-eight-bytes-that-fills-one-slot!";
static_assert(kLongest.size() == 48);

TEST_F(Cost, ACreateIsOneFenceAndFiveLines) {
  expect_cost(5, [&] { return fs_->create(parent_, kLongest, node(S_IFREG | 0644)); });
  expect_cost(5, [&] { return fs_->create(parent_, "second", node(S_IFREG | 0644)); });
}

TEST_F(Cost, AMkdirIsOneFenceAndFiveLines) {
  expect_cost(5, [&] { return fs_->create(parent_, kLongest, node(S_IFDIR | 0755)); });
}

TEST_F(Cost, AnUnlinkIsOneFenceAndThreeLines) {
  fs_.file(kLongest, parent_);
  expect_cost(3, [&] { return fs_->unlink(parent_, kLongest); });
  fs_->journal().checkpoint();
  expect_cost(3, [&] { return fs_->unlink(parent_, "first"); });
}

TEST_F(Cost, ARenameIsOneFenceAndFiveLines) {
  fs_.file(kLongest, parent_);
  expect_cost(5, [&] { return fs_->rename(parent_, kLongest, other_, "there", 0); });
  expect_cost(5, [&] { return fs_->rename(other_, "there", other_, kLongest, 0); });
  expect_cost(5, [&] { return fs_->rename(other_, kLongest, parent_, "first", 0); });
}

TEST_F(Cost, AChmodIsOneFenceAndOneLine) {
  const InodeId f = fs_.file("f", parent_);
  AttributeChange change;
  change.mode = 0600;
  expect_cost(1, [&] { return fs_->set_attributes(f, change); });
  fs_->journal().checkpoint();
  change.mode = 0644;
  expect_cost(1, [&] { return fs_->set_attributes(f, change); });
}

TEST_F(Cost, AnAppendOf128KiBCommitsWithOneFenceAndSevenLines) {
  const InodeId f = fs_.file("f", parent_);
  fs_.write(f, 0, 32, 1);
  fs_.commit(f, 1);
  fs_->journal().checkpoint();
  fs_.write(f, 32, 32, 2);
  expect_cost(7, [&] { return fs_->commit_inode(f, 2); });
}

TEST_F(Cost, AHomeBlockCountsOncePerChangeAndOncePerCheckpoint) {
  const InodeId f = fs_.file("f", parent_);
  fs_->journal().checkpoint();
  const JournalStats before = fs_->journal().stats();
  AttributeChange change;
  for (const uint32_t mode : {0600U, 0640U, 0644U}) {
    change.mode = mode;
    EXPECT_TRUE(fs_->set_attributes(f, change).ok());
  }
  fs_->journal().checkpoint();
  const JournalStats after = fs_->journal().stats();
  constexpr uint64_t kBlockWords = kBlockSize / kWordSize;
  EXPECT_EQ(after.block_words - before.block_words, 3 * kBlockWords);
  EXPECT_EQ(after.checkpoint_block_words - before.checkpoint_block_words, kBlockWords);
}

TEST_F(Cost, ACommitCountsNoBlocksOfChecksums) {
  const InodeId f = fs_.file("f", parent_);
  fs_.write(f, 0, 1, 1);
  fs_.commit(f, 1);
  fs_->journal().checkpoint();
  const uint64_t before = fs_->journal().stats().block_words;
  fs_.clock().advance();
  fs_.write(f, 0, 1, 2);  // an overwrite: the inode alone, as checksums do not count
  fs_.commit(f, 2);
  fs_->journal().checkpoint();
  EXPECT_EQ((fs_->journal().stats().block_words - before) * kWordSize / kBlockSize, 1U);
}

}  // namespace
}  // namespace streamfs::meta
