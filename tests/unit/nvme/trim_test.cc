// Which ranges a trim names.
#include "fuse-fs/nvme/trim.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "fuse-fs/nvme/structures.h"

namespace streamfs::nvme {
namespace {

TEST(Trims, WithoutLimitsACommandTakes256RangesOfUpTo32Bits) {
  const TrimLimits limits = trim_limits({}, {});
  EXPECT_EQ(limits.ranges, 256u);
  EXPECT_EQ(limits.range_lbas, 0xffffffffu);
  EXPECT_EQ(limits.command_lbas, UINT64_MAX);
  EXPECT_EQ(limits.granularity, 1u);
}

TEST(Trims, TheControllersLimitsAndTheNamespacesGranularitiesAreTaken) {
  NamespaceIdentity space;
  space.npdg = 7;
  space.npda = 3;
  const CommandSetLimits said{16, 4096, 10000};
  EXPECT_EQ(trim_limits(space, said).granularity, 1u);  // not valid without the bit
  space.nsfeat = NamespaceIdentity::kNsfeatOptimalIo;
  const TrimLimits limits = trim_limits(space, said);
  EXPECT_EQ(limits.ranges, 16u);
  EXPECT_EQ(limits.range_lbas, 4096u);
  EXPECT_EQ(limits.command_lbas, 10000u);
  EXPECT_EQ(limits.granularity, 8u);
  EXPECT_EQ(limits.alignment, 4u);
}

TEST(Trims, OnlyWholeUnitsInsideARunAreWorthIt) {
  const TrimLimits limits{.granularity = 8, .alignment = 4};
  const auto check = [&](LbaRun run, uint64_t first, uint64_t lbas) {
    const LbaRun inside = whole_units(run, limits);
    EXPECT_EQ(inside.lbas, lbas) << run.first << " + " << run.lbas;
    if (lbas > 0) {
      EXPECT_EQ(inside.first, first);
    }
  };
  check({0, 8}, 0, 8);
  check({4, 8}, 4, 8);
  check({5, 10}, 0, 0);
  check({5, 11}, 8, 8);
  check({1, 30}, 4, 24);
  check({0, 7}, 0, 0);
  check({UINT64_MAX - 40, 36}, UINT64_MAX - 39, 32);
}

// Whatever the limits: each command keeps to them, and together they are the run, in order.
TEST(Trims, CommandsKeepToTheLimitsAndCoverTheRun) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20000; ++round) {
    TrimLimits limits;
    limits.ranges = 1 + random() % 4;
    limits.range_lbas = 1 + random() % 100;
    limits.command_lbas = 1 + random() % 200;
    limits.granularity = 1 + random() % 12;
    limits.alignment = 1 + random() % 6;
    LbaRun run = whole_units({random() % 1000, random() % 3000}, limits);
    uint64_t at = run.first;
    const uint64_t end = run.first + run.lbas;
    while (run.lbas > 0) {
      const std::vector<Range> ranges = next_ranges(run, limits);
      ASSERT_FALSE(ranges.empty()) << round;
      ASSERT_LE(ranges.size(), limits.ranges);
      uint64_t lbas = 0;
      for (const Range& range : ranges) {
        ASSERT_EQ(range.first_lba, at);
        ASSERT_GT(range.lbas, 0u);
        ASSERT_LE(range.lbas, limits.range_lbas);
        // Units stay whole where the limits let them.
        if (limits.granularity % limits.alignment == 0 && limits.range_lbas >= limits.granularity &&
            limits.command_lbas >= limits.granularity) {
          ASSERT_EQ(range.lbas % limits.granularity, 0u) << round;
        }
        at += range.lbas;
        lbas += range.lbas;
      }
      ASSERT_LE(lbas, limits.command_lbas);
    }
    ASSERT_EQ(at, end);
  }
}

}  // namespace
}  // namespace streamfs::nvme
