// Yong 2021: vStreams.
#include <gtest/gtest.h>

#include <string>

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

TEST(Yong2021, Figure5VStreamAwareCopiesSaveMostWhileThePrefillIsBeingReplaced) {
  const FigureRows rows("yong2021-fig5");
  for (const std::string length : {"all of 2 capacities, ", "all of 4 capacities, "})
    EXPECT_LT(rows[length + "vStream-SGC, copies a host byte"],
              rows[length + "vStream-NGC, copies a host byte"]);
  EXPECT_GT(rows["all of 12 capacities, vStream-SGC, throughput"],
            rows["all of 4 capacities, vStream-SGC, throughput"]);
}

TEST(Yong2021, Figure5AutoStreamIsFasterThanLegacyWithChunksOfTheDevicesScale) {
  const FigureRows rows("yong2021-fig5");
  EXPECT_GT(rows["Auto, multi-queue, throughput"], 1.5);
  EXPECT_LT(rows["Auto, multi-queue, throughput"], rows["vStream-SGC, throughput"]);
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
  const FigureRows rows("yong2021-f2fs", 3);
  const double ours = rows["vStream-SGC, copies"];
  EXPECT_LT(ours, 0.49);
  EXPECT_LT(ours, rows["Manual, copies"]);
  EXPECT_LT(rows["Manual, copies"], rows["as Linux 7.2 places it, copies"]);
  EXPECT_LT(rows["as Linux 7.2 places it, copies"], 1);
  EXPECT_GT(rows["Legacy, WAF"], 1.05);
}

TEST(Yong2021, OnARecordedF2fsVStreamAwareCopiesSaveMoreWhereThereAreCopies) {
  const FigureRows rows("yong2021-f2fs", 3);
  EXPECT_NEAR(rows["vStream-SGC, copies"], rows["vStream-NGC, copies"], 0.05)
      << "discards leave too few copies to tell them apart";
  EXPECT_LE(rows["vStream-SGC in small blocks, copies"],
            rows["vStream-NGC in small blocks, copies"]);
  for (const std::string where : {" without discards", " without discards in small blocks"})
    EXPECT_LT(rows["vStream-SGC" + where + ", copies"], rows["vStream-NGC" + where + ", copies"]);
}

TEST(Yong2021, OnARecordedF2fsAutoStreamSavesCopiesWithChunksOfTheDevicesScale) {
  const FigureRows rows("yong2021-f2fs", 3);
  EXPECT_LT(rows["Auto, copies"], 0.85);
  EXPECT_GT(rows["Auto, chunks of 1 MiB, copies"], 0.9);
  EXPECT_LT(rows["Auto without discards in small blocks, copies"],
            rows["Manual without discards in small blocks, copies"]);
}

}  // namespace
}  // namespace streamfs::lab::figures
