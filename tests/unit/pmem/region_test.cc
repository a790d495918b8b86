// The region's promises, on real files.
#include "pmem/region.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace streamfs::pmem {
namespace {

constexpr uint64_t kRegionBytes = 64 * 1024;

class RegionTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "streamfs-region-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return (directory_ / "meta").string(); }
  std::unique_ptr<Region> create() const { return open_with({kRegionBytes, true, false, 0}); }
  std::unique_ptr<Region> open_with(const OpenOptions& options) const {
    auto region = open_region(path(), options);
    EXPECT_TRUE(region.ok()) << region.error().message();
    return region.ok() ? std::move(*region) : nullptr;
  }

  std::filesystem::path directory_;
};

TEST_F(RegionTest, WhatIsStoredIsThereAfterReopening) {
  create()->store_word(4096, 77);
  EXPECT_EQ(open_with({0, false, false, 0})->load(4096), 77U);
}

TEST_F(RegionTest, AHeldRegionIsBusy) {
  const auto held = create();
  const auto second = open_region(path(), {0, false, false, 0});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, EBUSY);
}

TEST_F(RegionTest, AWaitingOpenTakesOverFromOneThatEnds) {
  auto held = create();
  std::thread ending([&held] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    held.reset();
  });
  EXPECT_NE(open_with({0, false, false, 5}), nullptr);
  ending.join();
}

TEST_F(RegionTest, ReadOnlyLeavesTheFileAlone) {
  create();
  auto region = open_with({0, false, true, 0});
  region->store_word(8, 5);
  EXPECT_EQ(region->load(8), 5U);
  region.reset();
  EXPECT_EQ(open_with({0, false, false, 0})->load(8), 0U);
}

TEST_F(RegionTest, AFileGrowsWhereItIsMapped) {
  auto region = create();
  region->store_word(kRegionBytes - kWordSize, 5);
  const std::byte* const base = region->at(0);
  EXPECT_TRUE(region->extensible());
  for (const uint64_t size : {kRegionBytes + kBlockSize, 40 * kRegionBytes}) {
    ASSERT_TRUE(region->grow(size).ok());
    EXPECT_EQ(region->size(), size);
    EXPECT_EQ(region->medium_bytes().value(), size);
    region->store_word(size - kWordSize, size);
  }
  EXPECT_EQ(region->at(0), base);
  EXPECT_TRUE(region->grow(kRegionBytes).ok()) << "large enough is large enough";
  ASSERT_TRUE(region->sync().ok());
  region.reset();
  region = open_with({0, false, false, 0});
  EXPECT_EQ(region->size(), 40 * kRegionBytes);
  EXPECT_EQ(region->load(kRegionBytes - kWordSize), 5U);
  EXPECT_EQ(region->load(40 * kRegionBytes - kWordSize), 40 * kRegionBytes);
}

TEST_F(RegionTest, AFileThatCannotGrowIsAsItWas) {
  const auto region = create();
  EXPECT_EQ(region->grow(uint64_t{1} << 50).error().code, ENOSPC) << "no addresses for it";
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto ignored = signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{kRegionBytes + kBlockSize, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_EQ(region->grow(4 * kRegionBytes).error().code, EFBIG);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, ignored);
  EXPECT_EQ(region->size(), kRegionBytes);
  EXPECT_EQ(std::filesystem::file_size(path()), kRegionBytes);
  EXPECT_TRUE(region->grow(2 * kRegionBytes).ok());
}

TEST_F(RegionTest, WhatSomeoneMadeLongerIsSeen) {
  const auto region = create();
  std::filesystem::resize_file(path(), 3 * kRegionBytes + 5);
  EXPECT_EQ(region->medium_bytes().value(), 3 * kRegionBytes);
  EXPECT_EQ(region->size(), kRegionBytes) << "until it is taken";
  ASSERT_TRUE(region->grow(3 * kRegionBytes).ok());
  EXPECT_EQ(region->load(3 * kRegionBytes - kWordSize), 0U);
}

TEST(MemoryRegion, GrowsWhereItIs) {
  const auto region = make_memory_region(kRegionBytes, MetaClass::kPersistent);
  const std::byte* const base = region->at(0);
  region->store_word(8, 1);
  ASSERT_TRUE(region->grow(10 * kRegionBytes).ok());
  EXPECT_EQ(region->at(0), base);
  EXPECT_EQ(region->load(8), 1U);
  EXPECT_EQ(region->load(10 * kRegionBytes - kWordSize), 0U);
}

TEST_F(RegionTest, AMissingFileIsReportedNotMade) {
  const auto region = open_region(path(), {});
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.error().code, ENOENT);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(RegionTest, AnEmptyFileIsRefused) {
  std::ofstream(path()).flush();
  const auto region = open_region(path(), {});
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.error().code, EINVAL);
}

TEST_F(RegionTest, ACreationThatFailsLeavesWhatWasThere) {
  const OpenOptions too_small{1024, true, false, 0};
  EXPECT_FALSE(open_region(path(), too_small).ok());
  EXPECT_FALSE(std::filesystem::exists(path()));
  std::ofstream(path()).flush();
  EXPECT_FALSE(open_region(path(), too_small).ok());
  EXPECT_EQ(std::filesystem::file_size(path()), 0U);
  std::ofstream(path()) << "somebody's";
  EXPECT_FALSE(open_region(path(), too_small).ok());
  EXPECT_GE(std::filesystem::file_size(path()), 10U);
  const auto held = open_with({kRegionBytes, true, false, 0});
  EXPECT_FALSE(open_region(path(), too_small).ok());
  EXPECT_EQ(std::filesystem::file_size(path()), kRegionBytes);
}

TEST_F(RegionTest, ADirectoryIsRefused) {
  EXPECT_FALSE(open_region(directory_.string(), {0, false, true, 0}).ok());
}

TEST_F(RegionTest, SpaceIsReservedSoThatNoStoreMeetsAFullDisk) {
  create();
  EXPECT_GE(std::filesystem::file_size(path()), kRegionBytes);
}

TEST_F(RegionTest, MemoryFilesAreVolatile) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm here";
  const std::string in_memory = "/dev/shm/streamfs-region-test-" + std::to_string(getpid());
  const auto region = open_region(in_memory, {kRegionBytes, true, false, 0});
  std::filesystem::remove(in_memory);
  ASSERT_TRUE(region.ok());
  EXPECT_EQ((*region)->meta_class(), MetaClass::kVolatile);
}

TEST_F(RegionTest, OnlyChangedWordsCountAsProgrammed) {
  const auto region = create();
  const std::array<uint64_t, 4> words{1, 0, 3, 0};
  region->store(0, words);
  region->store(0, words);
  EXPECT_EQ(region->counters().words_programmed, 2U);
}

TEST_F(RegionTest, FlushTouchesEveryLineOfAnUnalignedRange) {
  const auto region = create();
  EXPECT_EQ(region->flush(56, 16).leave(), 2U);
  EXPECT_EQ(region->flush(64, 64).leave(), 1U);
  EXPECT_EQ(region->flush(60, 136).leave(), 4U);
  EXPECT_EQ(region->counters().lines_flushed, 7U);
}

TEST_F(RegionTest, AFlushThatNoFenceTakesAborts) {
  const auto region = create();
  EXPECT_DEATH({ const Flushed flushed = region->flush(0, 8); }, "lines_ == 0");
  Flushed flushed = region->flush(0, 8);
  flushed += region->flush(256, 65);
  EXPECT_EQ(flushed.lines(), 3U);
  region->fence(std::move(flushed));
}

TEST_F(RegionTest, MaskedStoresOfOneWordKeepEachOthersBits) {
  const auto region = create();
  std::vector<std::thread> threads;
  for (unsigned bit = 0; bit < 4; ++bit) {
    threads.emplace_back([&region, bit] {
      for (int turn = 0; turn < 20001; ++turn) {
        region->store_masked(128, uint64_t{1} << bit, turn % 2 == 0 ? ~uint64_t{0} : 0);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(region->load(128), 0xfU);
}

TEST_F(RegionTest, HalvesOfAWordAreIndependent) {
  const auto region = create();
  region->store_half(256, 0x11111111);
  region->store_half(260, 0x22222222);
  EXPECT_EQ(region->load(256), 0x2222222211111111U);
}

TEST_F(RegionTest, SyncSucceedsForManyAtOnce) {
  const auto region = create();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&region] { EXPECT_TRUE(region->sync().ok()); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(region->counters().syncs, 4U);
}

}  // namespace
}  // namespace streamfs::pmem
