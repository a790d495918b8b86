// Kim's figures, small: what each has to show, and what the device below promises.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "emulator/counters.h"
#include "emulator/figures/kim_device.h"
#include "emulator/workload/random.h"
#include "tests/unit/emulator/figure_rows.h"

namespace streamfs::emulator::figures {
namespace {

TEST(KimDevice, AScaleThatCannotBeIsRefused) {
  for (const uint32_t scale : {3u, 256u}) {
    const auto made = KimDevice::make({.scale = scale});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, EINVAL);
    EXPECT_NE(made.error().context.find("128 wordlines"), std::string::npos);
  }
  EXPECT_EQ(KimDevice::make({.scale = 64, .spare = 0}).error().code, EINVAL);
}

// Idle time is no time of the host's, and without work nothing is copied in it.
TEST(KimDevice, IdleTimeIsNotCountedAndWorksOnlyIfTold) {
  const std::unique_ptr<KimDevice> device =
      std::move(*KimDevice::make({.scale = 64, .dearer = 1000}));
  const uint32_t pages = device->geometry().user_pages * 9 / 10;
  Random random(1);
  const auto burst = [&](uint32_t writes) {
    for (uint32_t i = 0; i < writes; ++i) ASSERT_TRUE(device->write(random.below(pages), 1).ok());
  };
  for (uint32_t page = 0; page < pages; ++page) ASSERT_TRUE(device->write(page, 1).ok());
  burst(2 * pages);
  device->idle(1'000'000'000, false);
  const Counters before = device->counters();
  device->idle(1'000'000'000, false);
  EXPECT_EQ(device->counters().saturated_ns, before.saturated_ns);
  EXPECT_EQ(device->counters().gc_pages, before.gc_pages);
  burst(pages / 100);
  device->idle(1'000'000'000, true);
  EXPECT_GT(device->counters().idle_gc_pages, 0u);
  const uint64_t copied = device->counters().gc_pages;
  burst(pages / 100);
  EXPECT_EQ(device->counters().gc_pages, copied) << "a burst as large as the last finds its blocks";
}

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
}  // namespace streamfs::emulator::figures
