#include "learning/page_history.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace streamfs::learning {
namespace {

constexpr uint64_t kGroup = PageHistory::kGroupPages;
constexpr uint64_t kPages = 1 << 16;

void touch(PageHistory& history, uint64_t page, uint32_t clock) {
  PageLife& life = history.group_of(page).pages[page % kGroup];
  life.written = clock;
  life.ever = true;
}

uint64_t known_of(PageHistory& history) {
  uint64_t count = 0;
  history.for_each_known(0, history.size(), [&](uint64_t page, PageLife& life, auto&) {
    EXPECT_EQ(life.written, life.ever ? page : 0) << "another page's";
    count += life.ever ? 1 : 0;
  });
  return count;
}

TEST(PageHistory, WhereAllFitsNothingIsForgotten) {
  PageHistory history(kPages);
  for (uint64_t page = 0; page < kPages; ++page) touch(history, page, static_cast<uint32_t>(page));
  EXPECT_EQ(known_of(history), kPages);
}

TEST(PageHistory, WhatIsTouchedOftenStaysAndTheRestMakesRoom) {
  // An eighth of the device fits. Writes at a stride must not meet in a few sets.
  PageHistory history(kPages, kPages / kGroup / 8 * sizeof(PageHistory::Group));
  constexpr uint64_t kStride = 256, kHot = 8;
  for (uint64_t page = 0; page < kPages; page += kGroup) {
    touch(history, page, static_cast<uint32_t>(page));
    for (uint64_t hot = 0; hot < kHot; ++hot) {
      touch(history, hot * kStride, static_cast<uint32_t>(hot * kStride));
    }
  }
  for (uint64_t hot = 0; hot < kHot; ++hot) EXPECT_TRUE(history.find(hot * kStride).ever);
  const uint64_t known = known_of(history);
  EXPECT_LE(known, kPages / kGroup / 8);
  EXPECT_GT(known, kPages / kGroup / 16);
  EXPECT_EQ(history.find_group(kPages), nullptr) << "beyond the device";
}

TEST(PageHistory, WhatComesBackIsAsIfNeverTouched) {
  PageHistory history(kPages, 1);  // one set
  touch(history, 0, 7);
  history.group_of(0).mean_life = 5;
  for (uint64_t i = 1; i <= 8; ++i) touch(history, i * kGroup, 1);
  EXPECT_FALSE(history.find(0).ever);
  EXPECT_LT(history.group_of(0).mean_life, 0);
  EXPECT_FALSE(history.find(0).ever);
}

TEST(PageHistory, ARangeIsLookedThroughToItsEndsOnly) {
  for (const size_t bytes : {size_t{1}, PageHistory::kBytesMax}) {
    PageHistory history(kPages, bytes);
    for (uint64_t page = 0; page < 4 * kGroup; ++page) touch(history, page, 1);
    std::vector<uint64_t> seen;
    history.for_each_known(kGroup + 3, 3 * kGroup - 2,
                           [&](uint64_t page, PageLife&, auto&) { seen.push_back(page); });
    ASSERT_EQ(seen.size(), 2 * kGroup - 5);
    EXPECT_EQ(seen.front(), kGroup + 3);
    EXPECT_EQ(seen.back(), 3 * kGroup - 3);
  }
}

}  // namespace
}  // namespace streamfs::learning
