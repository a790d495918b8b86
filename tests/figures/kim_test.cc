// Kim 2015: discard, trim, alignment and the background command.
#include <gtest/gtest.h>

#include "tests/figures/figure_checks.h"

namespace streamfs::lab::figures {
namespace {

TEST(KimFigures, TrimsHelpAndDiscardsLess) {
  const FigureRows rows("kim2015-fig3");
  const double trim = rows["trim, random writes"], discard = rows["discard, random writes"];
  EXPECT_NEAR(trim, 25, 8);
  EXPECT_NEAR(discard, 18, 6);
  EXPECT_GT(trim, discard + 3);
  EXPECT_NEAR(rows["trim, life"], 8, 4);
  EXPECT_GT(rows["discard, life"], 1);
  EXPECT_NEAR(rows["discard of whole 32 KiB, random writes"], 0, 3);
  EXPECT_LT(rows["trim, random writes, files 2 % of the device"], trim);
  EXPECT_GT(rows["trim, random writes, files 8 % of the device"], 1.3 * trim);
}

TEST(KimFigures, AlignmentMattersToSmallFiles) {
  const FigureRows rows("kim2015-fig4");
  EXPECT_NEAR(rows["trim, aligned over misaligned, random writes"], 10, 6);
  EXPECT_NEAR(rows["trim, aligned over misaligned, life"], 13, 4);
  EXPECT_NEAR(rows["discard, aligned over misaligned, random writes"], 10, 6);
  EXPECT_NEAR(rows["discard, aligned over misaligned, life"], 13, 4);
  EXPECT_GT(rows["trim, misaligned, over none, random writes"], 5);
  EXPECT_NEAR(rows["trim, files of up to 1 MiB, aligned over misaligned, life"], 0, 2);
}

TEST(KimFigures, TheBackgroundCommandSpeedsBurstsUpForFewBytes) {
  const FigureRows rows("kim2015-fig5");
  EXPECT_LE(rows["default limits, NAND bytes at most"], 1.05);
  EXPECT_LE(rows["everything, NAND bytes at most"], 1.06);
  EXPECT_GT(rows["the command does everything, 60 s"], 120);
  EXPECT_GT(rows["default limits, 60 s"], 70);
  EXPECT_GE(rows["the command does everything, 60 s"], rows["default limits, 60 s"]);
  EXPECT_GT(rows["everything, 60 s"], rows["everything, 10 s"]);
  EXPECT_GT(rows["everything, 10 s"], rows["everything, 1 s"]);
  EXPECT_GT(rows["everything, 90 % full, bursts of 5 %, 60 s"],
            rows["everything, 70 % full, bursts of 5 %, 60 s"]);
  EXPECT_GT(rows["everything, 70 % full, bursts of 5 %, 60 s"],
            rows["everything, 50 % full, bursts of 5 %, 60 s"]);
  EXPECT_LT(rows["everything, 60 s, erases"], 5);
}

}  // namespace
}  // namespace streamfs::lab::figures
