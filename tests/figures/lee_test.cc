// Lee: metadata in PRAM, with two FTLs.
#include <gtest/gtest.h>

#include <string>

#include "tests/figures/figure_checks.h"

namespace streamfs::lab::figures {
namespace {

TEST(LeeFigures, HybridWritesAtRandomAsInOrderAndLogBlocksDoNot) {
  const FigureRows rows("lee-randwrite");
  const double sequential = rows["LBFTL, sequential write"];
  EXPECT_NEAR(rows["hFTL, sequential write"], sequential, 0.03 * sequential);
  EXPECT_NEAR(sequential, 1.62, 0.1);
  EXPECT_NEAR(rows["hFTL, sequential read"], rows["LBFTL, sequential read"], 0.01);
  EXPECT_NEAR(rows["hFTL, random read"], rows["LBFTL, random read"], 0.01);
  EXPECT_GT(rows["hFTL, random write"], 0.8 * sequential);
  EXPECT_LT(rows["LBFTL, random write"], 0.1 * sequential);
  EXPECT_GT(rows["hFTL + FSMS, random write on FAT"], 1.5 * rows["hFTL, random write on FAT"]);
  EXPECT_GT(rows["LBFTL + FSMS, random write on FAT"], rows["LBFTL, random write on FAT"]);
}

TEST(LeeFigures, SeparationHelpsEveryTestOfIozone) {
  const FigureRows rows("lee-iozone");
  for (const char* what : {"random write", "sequential write", "sequential rewrite"}) {
    const std::string test = std::string(", ") + what;
    EXPECT_GT(rows["LBFTL + FSMS" + test], 1.02 * rows["LBFTL" + test]) << what;
    EXPECT_GT(rows["hFTL + FSMS" + test], 1.1 * rows["hFTL" + test]) << what;
    EXPECT_GE(rows["hFTL" + test], rows["LBFTL" + test]) << what;
  }
  EXPECT_NEAR(rows["hFTL + FSMS, sequential write"], rows["LBFTL + FSMS, sequential write"], 0.1);
}

TEST(LeeFigures, ErasesDramAndPramAreAsTheSourceHasThem) {
  const FigureRows rows("lee-erase");
  EXPECT_LT(rows["hFTL + FSMS, random writes"], 0.1 * rows["LBFTL + FSMS, random writes"]);
  EXPECT_LT(rows["hFTL + FSMS, random writes"], 0.7 * rows["hFTL, random writes"]);
  EXPECT_LT(rows["LBFTL + FSMS, write, rewrite and delete"],
            rows["LBFTL, write, rewrite and delete"]);
  EXPECT_NEAR(rows["hFTL + FSMS, write, rewrite and delete"],
              rows["LBFTL + FSMS, write, rewrite and delete"], 1);
  EXPECT_LT(rows["hFTL, DRAM"], 0.01 * rows["LBFTL, DRAM"]);
  EXPECT_NEAR(rows["hFTL, PRAM for 1 GiB of NAND"], 2.5, 0.6);
}

TEST(LeeFigures, StartUpIsConstantWithoutAScan) {
  const FigureRows rows("lee-startup");
  EXPECT_NEAR(rows["hFTL, all of the device"], rows["hFTL, 1/8 of the device"], 0.3);
  EXPECT_GT(rows["LBFTL, all of the device"], 6 * rows["LBFTL, 1/8 of the device"]);
  EXPECT_GT(rows["LBFTL, 1/8 of the device"], 10 * rows["hFTL, 1/8 of the device"]);
}

TEST(LeeFigures, FewWordsOfAMetadataBlockChange) {
  const FigureRows rows("lee-selective");
  const std::string of = " bytes changed, of a sector, 16 KiB a transaction";
  EXPECT_GT(rows["words of 8" + of], 8);
  EXPECT_LT(rows["words of 8" + of], 24);
  EXPECT_LT(rows["words of 2" + of], rows["words of 8" + of]);
  EXPECT_EQ(rows["words programmed for a block, all of it"], 256);
  EXPECT_LT(rows["words programmed for a block, selectively"], 26);
  EXPECT_GT(rows["writing, selectively"], 1.5 * rows["writing, whole blocks"]);
}

}  // namespace
}  // namespace streamfs::lab::figures
