// Vishwakarma 2019: the eMMC with streams.
#include <gtest/gtest.h>

#include <string>

#include "emulator/figures/figure.h"
#include "tests/figures/figure_checks.h"

namespace streamfs::emulator::figures {
namespace {

TEST(Vishwakarma2019, StreamsSaveUpToNineTenthsFullAndEndThere) {
  const FigureRun run = small_run("vishwakarma2019-waf", 1);
  for (const char* fill : {"50", "60", "70", "80", "84", "86", "88"})
    EXPECT_LE(row(run, fill + std::string(" % full, streams on")), 1.02) << fill;
  EXPECT_GT(row(run, "88 % full, streams off"), 1.3);
  EXPECT_LE(row(run, "90 % full, streams on"), 1.02);
  EXPECT_GT(row(run, "91 % full, streams on"), 0.9 * row(run, "91 % full, streams off"));
  EXPECT_EQ(row(run, "RAM for four streams"), 108);
}

}  // namespace
}  // namespace streamfs::emulator::figures
