// Which images a power cut may leave, and which it may not.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/types.h"
#include "pmem/recording_region.h"
#include "pmem/region.h"

namespace streamfs::pmem {
namespace {

constexpr uint64_t kImageBytes = 4096;
constexpr uint64_t kA = 0, kB = 8, kOtherLine = 64;

using Pair = std::pair<uint64_t, uint64_t>;

// The values of two words over all images of one model.
std::set<Pair> images(const RecordingRegion& region, StoreModel model, uint64_t first,
                      uint64_t second) {
  std::set<Pair> seen;
  ExploreOptions options;
  options.models = {model};
  each_crash_image(region.initial(), region.events(), options, [&](const CrashImage& image) {
    seen.emplace(image.words[first / 8], image.words[second / 8]);
    return true;
  });
  return seen;
}

class CrashImages : public testing::Test {
 protected:
  RecordingRegion region_{kImageBytes, MetaClass::kPersistent};
};

TEST_F(CrashImages, StoresToOneLineReachTheMediaInOrder) {
  region_.store_word(kA, 1);
  region_.store_word(kB, 1);
  EXPECT_EQ(images(region_, StoreModel::kLinePrefix, kA, kB),
            (std::set<Pair>{{0, 0}, {1, 0}, {1, 1}}));
}

TEST_F(CrashImages, AnyWordModelAllowsEveryCombination) {
  region_.store_word(kA, 1);
  region_.store_word(kB, 1);
  EXPECT_EQ(images(region_, StoreModel::kAnyWord, kA, kB).size(), 4U);
}

TEST_F(CrashImages, LinesAreIndependent) {
  region_.store_word(kA, 1);
  region_.store_word(kOtherLine, 1);
  EXPECT_EQ(images(region_, StoreModel::kLinePrefix, kA, kOtherLine).size(), 4U);
}

TEST_F(CrashImages, FlushedAndFencedIsAlwaysThere) {
  region_.store_word(kA, 1);
  region_.fence(region_.flush(kA, 8));
  region_.store_word(kOtherLine, 1);
  region_.mark();
  const auto seen = images(region_, StoreModel::kAnyWord, kA, kOtherLine);
  EXPECT_FALSE(seen.contains({0, 1})) << "the second store came after the fence";
  EXPECT_TRUE(seen.contains({1, 0}));
  EXPECT_TRUE(seen.contains({0, 0})) << "a cut before the fence";
}

TEST_F(CrashImages, AFenceWithoutAFlushProvesNothing) {
  region_.store_word(kA, 1);
  region_.fence();
  region_.store_word(kOtherLine, 1);
  EXPECT_TRUE(images(region_, StoreModel::kLinePrefix, kA, kOtherLine).contains({0, 1}));
}

TEST_F(CrashImages, AStoreAfterTheFlushIsNotCoveredByIt) {
  region_.store_word(kA, 1);
  pmem::Flushed flushed = region_.flush(kA, 8);
  region_.store_word(kA, 2);
  region_.fence(std::move(flushed));
  region_.store_word(kOtherLine, 1);
  const auto seen = images(region_, StoreModel::kLinePrefix, kA, kOtherLine);
  EXPECT_TRUE(seen.contains({1, 1}));
  EXPECT_TRUE(seen.contains({2, 1}));
  EXPECT_FALSE(seen.contains({0, 1}));
}

TEST_F(CrashImages, MarksCountWhatHadEnded) {
  std::set<size_t> marks;
  region_.store_word(kA, 1);
  region_.mark();
  region_.store_word(kA, 2);
  region_.mark();
  each_crash_image(region_.initial(), region_.events(), {}, [&](const CrashImage& image) {
    marks.insert(image.marks);
    return true;
  });
  EXPECT_EQ(marks, (std::set<size_t>{1, 2}));
}

TEST(ScratchRegion, PutsBackEveryWordHoweverItWasStored) {
  std::vector<uint64_t> words(512);
  for (size_t i = 0; i < words.size(); ++i) words[i] = i + 1;
  const std::vector<uint64_t> before = words;
  ScratchRegion region(words);
  for (const uint64_t round : {1U, 2U}) {  // the second after a put_back()
    const std::vector<uint64_t> fresh(40, round * 1000);
    region.store(3 * kWordSize, fresh);  // parts of lines at both ends
    region.store(5 * kWordSize, fresh);  // again: the first values are what comes back
    region.store_word(511 * kWordSize, 7);
    region.store_masked(200 * kWordSize, 0xff, 9);
    region.store_half(300 * kWordSize + 4, 11);
    region.store_zeroes(400 * kWordSize, 64);
    EXPECT_EQ(words[3], round * 1000);
    EXPECT_EQ(words[44], round * 1000);
    EXPECT_EQ(words[45], 46U);
    EXPECT_EQ(words[511], 7U);
    EXPECT_EQ(words[200], 9U);
    EXPECT_EQ(words[300], 301 | uint64_t{11} << 32);
    EXPECT_EQ(words[407], 0U);
    region.put_back();
    EXPECT_EQ(words, before);
  }
}

}  // namespace
}  // namespace streamfs::pmem
