// Vishwakarma 2019: the eMMC with streams.
#include <gtest/gtest.h>

#include <string>

#include "tests/figures/figure_checks.h"

namespace streamfs::lab::figures {
namespace {

TEST(Vishwakarma2019, StreamsSaveUpToNineTenthsFullAndEndThere) {
  const FigureRows rows("vishwakarma2019-waf");
  for (const char* fill : {"50", "60", "70", "80", "84", "86", "88"})
    EXPECT_LE(rows[fill + std::string(" % full, streams on")], 1.02) << fill;
  EXPECT_GT(rows["88 % full, streams off"], 1.3);
  EXPECT_LE(rows["90 % full, streams on"], 1.02);
  EXPECT_GT(rows["91 % full, streams on"], 0.9 * rows["91 % full, streams off"]);
  EXPECT_EQ(rows["RAM for four streams"], 108);
}

TEST(Vishwakarma2019, MoreStreamsThanBuffersPadAndCostMoreThanTheySave) {
  const FigureRows rows("vishwakarma2019-streams");
  EXPECT_EQ(rows["streams with the least WAF, four buffers"], 4);
  EXPECT_LT(rows["streams: 4, four buffers"], rows["streams: 2, four buffers"]);
  EXPECT_LT(rows["streams: 4, four buffers: padding"], 0.03);
  EXPECT_GT(rows["streams: 5, four buffers: padding"], 0.05);
  EXPECT_GT(rows["streams: 15, four buffers"], rows["streams: 4, four buffers"]);
  EXPECT_LE(rows["streams: 15, a buffer each"], rows["streams: 4, a buffer each"]);
}

}  // namespace
}  // namespace streamfs::lab::figures
