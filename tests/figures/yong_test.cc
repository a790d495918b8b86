// Yong 2021: vStreams.
#include <gtest/gtest.h>

#include "tests/figures/figure_checks.h"

namespace streamfs::lab::figures {
namespace {

TEST(Yong2021, Figure5VStreamsLeaveNothingToCopyAndTheLiteralClusteringAll) {
  const FigureRows rows("yong2021-fig5");
  EXPECT_GT(rows["Legacy, WAF"], 2.5);
  EXPECT_LE(rows["vStream-SGC, WAF"], 1.02);
  EXPECT_GE(rows["vStream-SGC, throughput ÷ work-conserving bound"], 0.95);
  EXPECT_GT(rows["vStream-SGC, throughput"], 3.4);
  EXPECT_LT(rows["vStream-SGC, copies a second"], 0.65);
  EXPECT_DOUBLE_EQ(rows["algorithm 2 to the letter, WAF"], rows["Legacy, WAF"]);
}

TEST(Yong2021, Figure6VStreamAwareCopiesSaveMostWithDriftAndWithout) {
  const FigureRows rows("yong2021-fig6", 3);
  EXPECT_LT(rows["vStream-SGC, copies"], rows["vStream-NGC, copies"]);
  EXPECT_LT(rows["vStream-SGC, copies"], rows["Manual, copies"]);
  EXPECT_LT(rows["vStream-NGC, copies"], 1);
  EXPECT_GT(rows["vStream-SGC, throughput"], 1);
  EXPECT_LT(rows["vStream-SGC, no drift, copies"], rows["vStream-NGC, no drift, copies"]);
}

TEST(Yong2021, OnARecordedF2fsStreamsSaveCopiesAndMoreThanLinuxDoesWithThem) {
  const FigureRows rows("yong2021-f2fs");
  const double ours = rows["vStream-SGC, copies"];
  EXPECT_LT(ours, 0.49);
  EXPECT_LT(ours, rows["Manual, copies"]);
  EXPECT_LT(rows["Manual, copies"], rows["as Linux 7.2 places it, copies"]);
  EXPECT_LT(rows["as Linux 7.2 places it, copies"], 1);
  EXPECT_GT(rows["Legacy, WAF"], 1.05);
}

}  // namespace
}  // namespace streamfs::lab::figures
