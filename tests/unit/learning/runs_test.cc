#include "learning/runs.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace streamfs::learning {
namespace {

TEST(Runs, AWriteWhereOneEndedGoesOnWithIt) {
  Runs runs;
  EXPECT_FALSE(runs.place(100, 4, 1).continues);
  const RunPlace next = runs.place(104, 2, 5);
  EXPECT_TRUE(next.continues);
  EXPECT_EQ(next.before, 4U);
  EXPECT_EQ(next.overlap, 0);
  EXPECT_EQ(runs.place(106, 1, 7).before, 6U);
  EXPECT_FALSE(runs.place(104, 2, 9).continues) << "a run ends in one place";
}

TEST(Runs, ALogsTailIsWrittenAgain) {
  Runs runs;
  runs.place(100, 4, 1);
  float overlaps = 0;
  for (uint64_t i = 0; i < 30; ++i) {
    const RunPlace next = runs.place(103 + i, 2, 5 + i);
    ASSERT_TRUE(next.continues);
    ASSERT_EQ(next.overlap, 1);
    ASSERT_EQ(next.before, 4 + i);
    ASSERT_GE(next.overlaps, overlaps);
    overlaps = next.overlaps;
  }
  EXPECT_GT(overlaps, 0.95F);
}

TEST(Runs, MoreThanItsTailRewrittenIsAnotherRun) {
  Runs runs;
  runs.place(100, 20, 1);
  EXPECT_FALSE(runs.place(111, 20, 2).continues);
  EXPECT_TRUE(runs.place(123, 8, 3).continues);
}

TEST(Runs, TheLongestUnusedGoesFirst) {
  Runs runs;
  for (uint64_t i = 0; i < 4096; ++i) runs.place(1000 * i, 1, i + 1);
  EXPECT_TRUE(runs.place(1000 * 4095 + 1, 1, 5000).continues);
  EXPECT_FALSE(runs.place(1, 1, 5001).continues);
}

}  // namespace
}  // namespace streamfs::learning
