// Inodes in memory: a limit on those that are only kept to be asked for again, and nothing lost by
// it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/types.h"
#include "tests/unit/meta/filesystem.h"

namespace streamfs::meta {
namespace {

constexpr uint64_t kLimit = 1 << 20;
constexpr uint64_t kFiles = 20000;
constexpr uint64_t kNumberBytes = 56;  // of a file of which only the references are kept
constexpr uint64_t kSlack = 2 << 20;   // bytes that shards have not told yet

std::vector<InodeId> make_files(Filesystem& fs, uint64_t count) {
  std::vector<InodeId> files;
  for (uint64_t i = 0; i < count; ++i) {
    files.push_back(fs.file(std::to_string(i)));
    if (i % 4 == 0) fs.write(files.back(), 0, 1 + i % 3);
    if (i % 8 == 0) fs.commit(files.back());
  }
  return files;
}

TEST(InodeCache, KeepsToItsLimitWhileTheKernelKnowsMoreFiles) {
  Filesystem limited({.meta_bytes = 64 << 20, .cache_bytes = kLimit});
  Filesystem roomy({.meta_bytes = 64 << 20});
  for (Filesystem* fs : {&limited, &roomy}) {
    for (const InodeId id : make_files(*fs, kFiles)) fs->commit(id);
  }
  EXPECT_LT(limited->cached_bytes(), kLimit + kFiles * kNumberBytes + kSlack);
  EXPECT_GT(roomy->cached_bytes(), 2 * (kLimit + kFiles * kNumberBytes + kSlack));
}

TEST(InodeCache, NothingThatWaitsForItsCommitIsEvicted) {
  Filesystem fs({.meta_bytes = 64 << 20, .cache_bytes = 0});
  constexpr uint64_t kSome = kFiles / 4;  // each looks in vain for who could go
  const std::vector<InodeId> files = make_files(fs, kSome);
  for (uint64_t i = 0; i < kSome; ++i) {
    const uint64_t blocks = i % 4 == 0 ? 1 + i % 3 : 0;
    ASSERT_EQ(fs.attributes(files[i]).blocks, blocks) << i;
    ASSERT_EQ(fs->dirty(files[i]), i % 4 == 0 && i % 8 != 0) << i;
  }
}

TEST(InodeCache, AnEvictedFileWithoutANameLivesUntilItsLastReferenceGoes) {
  Filesystem fs({.meta_bytes = 64 << 20, .cache_bytes = 0});
  const InodeId open = fs.file("open");
  fs.write(open, 0, 3);
  fs.commit(open);
  ASSERT_EQ(fs.unlink("open"), 0);
  make_files(fs, 4000);  // in between it is evicted
  EXPECT_EQ(fs.attributes(open).blocks, 3u);
  EXPECT_EQ(fs.attributes(open).nlink, 0u);
  EXPECT_FALSE(fs->forget(open, 0));
  EXPECT_TRUE(fs->forget(open, 1));
  EXPECT_TRUE(fs->free_orphan(open).ok());
  EXPECT_EQ(fs->attributes(open).error().code, ESTALE);
}

TEST(InodeCache, DirectoriesAreReadAgainAfterTheyWereEvicted) {
  Filesystem fs({.meta_bytes = 64 << 20, .cache_bytes = 0});
  std::vector<InodeId> folders;
  for (int i = 0; i < 100; ++i) {
    folders.push_back(fs.directory("d" + std::to_string(i)));
    for (int n = 0; n < 50; ++n) fs.file(std::to_string(n), folders.back());
  }
  for (const InodeId folder : folders) {
    EXPECT_EQ(fs.names(folder).size(), 50u);
    EXPECT_EQ(fs.unlink("7", folder), 0);
    EXPECT_FALSE(fs.exists("7", folder));
  }
}

TEST(InodeCache, WhatIsLargerThanTheLimitStaysForAWhile) {
  Filesystem fs({.meta_bytes = 64 << 20, .cache_bytes = 64 * 1024});
  const InodeId large = fs.directory("large"), other = fs.directory("other");
  for (uint64_t i = 0; i < kFiles; ++i) fs->forget(fs.file(std::to_string(i), large), 1);
  EXPECT_TRUE(fs.exists("7", large));
  const uint64_t with_its_index = fs->cached_bytes();
  EXPECT_GT(with_its_index, 4 * 64 * 1024u);
  for (int i = 0; i < 100; ++i) fs.attributes(other);
  EXPECT_GT(fs->cached_bytes(), with_its_index / 2);
  for (int i = 0; i < 1000; ++i) fs.attributes(other);
  EXPECT_LT(fs->cached_bytes(), with_its_index / 2);
}

TEST(InodeCache, ThreadsThatEvictEachOthersInodesLoseNothing) {
  Filesystem fs({.meta_bytes = 64 << 20, .cache_bytes = 0});
  const InodeId folders[] = {fs.directory("a"), fs.directory("b")};
  constexpr uint64_t kEach = 2000;
  std::vector<std::thread> threads;
  for (const InodeId folder : folders) {
    threads.emplace_back([&fs, folder] {
      std::vector<InodeId> files;
      for (uint64_t i = 0; i < kEach; ++i) {
        files.push_back(fs.file(std::to_string(i), folder));
        fs.write(files.back(), 0, 1);
        if (i % 2 == 0) fs.commit(files.back());
        EXPECT_EQ(fs.attributes(files[i / 2]).blocks, 1u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const InodeId folder : folders) EXPECT_EQ(fs.names(folder).size(), kEach);
}

}  // namespace
}  // namespace streamfs::meta
