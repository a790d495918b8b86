// Kim's device; its figures are in tests/figures.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/result.h"
#include "lab/figures/kim_device.h"
#include "ssd/counters.h"

namespace streamfs::lab::figures {
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
  const ssd::Counters before = device->counters();
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

}  // namespace
}  // namespace streamfs::lab::figures
