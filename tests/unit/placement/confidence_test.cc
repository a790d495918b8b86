#include "fuse-fs/placement/confidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace streamfs::placement {
namespace {

struct Known {
  double count, low, high;
};

// Exact limits: chi-squared quantiles, as any table of Garwood's has them.
TEST(Confidence, LimitsOfACountAreGarwoods) {
  for (const Known& each : std::vector<Known>{{5, 1.6235, 11.6683},
                                              {10, 4.7954, 18.3904},
                                              {20, 12.2165, 30.8884},
                                              {50, 37.1112, 65.9183},
                                              {100, 81.3640, 121.6272}}) {
    const Limits found = poisson_limits(each.count);
    EXPECT_NEAR(found.low / each.low, 1, .01) << each.count;
    EXPECT_NEAR(found.high / each.high, 1, .01) << each.count;
  }
  EXPECT_EQ(poisson_limits(0).low, 0);
  EXPECT_NEAR(poisson_limits(0).high, 3.6889, .05);
}

TEST(Confidence, MoreDeathsMakeLimitsNarrower) {
  double width = 1e9;
  for (const double deaths : {1.0, 10.0, 100.0, 10'000.0}) {
    const Limits found = lifetime_limits(1000 * deaths, deaths);
    EXPECT_LT(found.low, 1000);
    EXPECT_GT(found.high, 1000);
    EXPECT_LT(found.high - found.low, width);
    width = found.high - found.low;
  }
}

// Pages that die at an even rate, watched for a while: the truth is between in 95 of 100.
TEST(Confidence, TheTrueLifetimeIsBetweenInNineteenOfTwenty) {
  constexpr double kTruth = 700;
  constexpr int kTrials = 4000;
  std::mt19937_64 random(20240229);
  std::exponential_distribution<double> life(1 / kTruth);
  int between = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    double exposure = 0, deaths = 0;
    for (int page = 0; page < 80; ++page) {
      const double lived = life(random), watched = 500;
      exposure += std::min(lived, watched);
      deaths += lived <= watched ? 1 : 0;
    }
    const Limits found = lifetime_limits(exposure, deaths);
    between += found.low <= kTruth && kTruth <= found.high ? 1 : 0;
  }
  EXPECT_GE(between, kTrials * 94 / 100);
}

}  // namespace
}  // namespace streamfs::placement
