// Yong 2021: vStreams.
#include <gtest/gtest.h>

#include "emulator/figures/figure.h"
#include "tests/figures/figure_checks.h"

namespace streamfs::emulator::figures {
namespace {

TEST(Yong2021, Figure5VStreamsLeaveNothingToCopyAndTheLiteralClusteringAll) {
  const FigureRun result = small_run("yong2021-fig5", 1);
  EXPECT_GT(row(result, "Legacy, WAF"), 2.5);
  EXPECT_LE(row(result, "vStream-SGC, WAF"), 1.02);
  EXPECT_GE(row(result, "vStream-SGC, throughput ÷ work-conserving bound"), 0.95);
  EXPECT_GT(row(result, "vStream-SGC, throughput"), 3.4);
  EXPECT_LT(row(result, "vStream-SGC, copies a second"), 0.65);
  EXPECT_DOUBLE_EQ(row(result, "algorithm 2 to the letter, WAF"), row(result, "Legacy, WAF"));
}

TEST(Yong2021, Figure6VStreamAwareCopiesSaveMostWithDriftAndWithout) {
  const FigureRun result = small_run("yong2021-fig6", 3);
  EXPECT_LT(row(result, "vStream-SGC, copies"), row(result, "vStream-NGC, copies"));
  EXPECT_LT(row(result, "vStream-SGC, copies"), row(result, "Manual, copies"));
  EXPECT_LT(row(result, "vStream-NGC, copies"), 1);
  EXPECT_GT(row(result, "vStream-SGC, throughput"), 1);
  EXPECT_LT(row(result, "vStream-SGC, no drift, copies"),
            row(result, "vStream-NGC, no drift, copies"));
}

TEST(Yong2021, OnARecordedF2fsStreamsSaveCopiesAndMoreThanLinuxDoesWithThem) {
  const FigureRun result = small_run("yong2021-f2fs", 1);
  const double ours = row(result, "vStream-SGC, copies");
  EXPECT_LT(ours, 0.49);
  EXPECT_LT(ours, row(result, "Manual, copies"));
  EXPECT_LT(row(result, "Manual, copies"), row(result, "as Linux 7.2 places it, copies"));
  EXPECT_LT(row(result, "as Linux 7.2 places it, copies"), 1);
  EXPECT_GT(row(result, "Legacy, WAF"), 1.05);
}

}  // namespace
}  // namespace streamfs::emulator::figures
