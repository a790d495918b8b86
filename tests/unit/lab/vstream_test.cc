// The vStream FTL beside its rules, and Yong's figures at small scale.
#include "lab/placement/vstream.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "lab/figures/figure.h"
#include "lab/placement/policy.h"
#include "ssd/ftl/flash_watcher.h"
#include "ssd/ftl/router.h"
#include "ssd/ftl/vstream/lifetimes.h"
#include "ssd/ftl/vstream/stream_map.h"
#include "ssd/ftl/vstream/superpage_stamps.h"
#include "ssd/ftl/write_stamp.h"
#include "ssd/geometry.h"
#include "ssd/presets.h"

namespace streamfs::lab {
namespace {

using ssd::vstream::Clustering;

ssd::Geometry small_device() {
  ssd::Geometry geometry;
  geometry.user_pages = 64;
  geometry.blocks = 8;
  geometry.pages_per_block = 16;
  geometry.wordline_pages = 4;  // a superpage is 4 pages
  return geometry;
}

ssd::WriteStamp written(uint64_t clock, uint16_t vstream) {
  return {.sequence = clock, .written_at = clock, .vstream = vstream, .pstream = 0};
}

TEST(VStreamPreset, IsThePublishedDevice) {
  const Result<ssd::Geometry> device = ssd::plan_geometry(*ssd::find_preset("vstream-256g"));
  ASSERT_TRUE(device.ok()) << device.error().message();
  EXPECT_EQ(device->blocks, 360u);
  EXPECT_EQ(device->physical_pages() * ssd::kPageBytes, 270 * kGiB);
  EXPECT_EQ(device->user_pages * ssd::kPageBytes, 256 * kGiB);
  EXPECT_EQ(ssd::vstream::SuperpageStamps(*device).superpage_pages(), 768u);
  // Below 3 % of 360: at 10 or fewer.
  EXPECT_EQ(device->low_water, 10);
}

TEST(SuperpageStamps, AFullSuperpageHasTheMeanOfItsPages) {
  ssd::vstream::SuperpageStamps stamps(small_device());
  std::vector<int64_t> changes;
  for (uint32_t i = 0; i < 4; ++i) {
    stamps.add(i, 10 * i, [&](ssd::Ppn, int64_t change) { changes.push_back(change); });
    if (i < 3) {
      EXPECT_EQ(stamps.written_at(i), 10 * i);
    }
  }
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(stamps.written_at(i), 15u);
  EXPECT_EQ(changes, (std::vector<int64_t>{15, 5, -5, -15}));
}

// A block can be closed half full and erased.
TEST(SuperpageStamps, AHalfFilledSuperpageIsFilledAgain) {
  ssd::vstream::SuperpageStamps stamps(small_device());
  const auto ignore = [](ssd::Ppn, int64_t) {};
  for (uint32_t i = 0; i < 2; ++i) stamps.add(i, 10, ignore);
  for (uint32_t i = 0; i < 4; ++i) stamps.add(i, 20 + 2 * i, ignore);
  EXPECT_EQ(stamps.written_at(3), 23u);
}

TEST(VStreamLifetimes, AlgorithmOneIsTheMeanAgeOfTheDead) {
  ssd::vstream::Lifetimes lifetimes(small_device());
  for (uint64_t i = 0; i < 4; ++i) lifetimes.stored(static_cast<ssd::Ppn>(i), written(i, 7));
  lifetimes.dies(0, 103);  // its superpage was programmed at 3
  lifetimes.dies(2, 203);
  EXPECT_DOUBLE_EQ(lifetimes.published(ssd::vstream::slot_of(7)), 150);
  EXPECT_DOUBLE_EQ(lifetimes.published(ssd::vstream::slot_of(8)), 0);
}

TEST(VStreamLifetimes, ExposureCountsTheLivingAndACopyKeepsItsAge) {
  ssd::vstream::Lifetimes lifetimes(small_device());
  for (uint64_t i = 0; i < 4; ++i) lifetimes.stored(static_cast<ssd::Ppn>(i), written(i, 7));
  const ssd::vstream::Slot slot = ssd::vstream::slot_of(7);
  const double at_100 = lifetimes.exposure(slot, 100);
  EXPECT_NEAR(at_100, 4 * 100 - (0 + 1 + 2 + 3), 4);
  lifetimes.dies(1, 100);
  for (uint32_t i = 0; i < 4; ++i)
    if (i != 1) lifetimes.copied(16 + (i > 1 ? i - 1 : i), i);
  EXPECT_NEAR(lifetimes.exposure(slot, 200), at_100 + 300, 4);
  lifetimes.read(17);
  EXPECT_EQ(lifetimes.last_read(), slot);
}

TEST(VStreamLifetimes, WhatDiedIsNotCountedAgainWhenGarbageCollectionStillCopiesIt) {
  ssd::vstream::Lifetimes lifetimes(small_device());
  for (uint64_t i = 0; i < 4; ++i) lifetimes.stored(static_cast<ssd::Ppn>(i), written(i, 7));
  lifetimes.dies(0, 50);
  lifetimes.copied(16, 0);
  lifetimes.dies(16, 60);
  EXPECT_DOUBLE_EQ(lifetimes.published(ssd::vstream::slot_of(7)), 47);
}

TEST(VStreamLifetimes, AfterARestartExposureCountsFromThere) {
  ssd::vstream::Lifetimes lifetimes(small_device());
  const ssd::vstream::Slot slot = ssd::vstream::slot_of(7);
  for (ssd::Ppn page = 0; page < 64; ++page) lifetimes.restore(page, slot, 0, 10'000);
  lifetimes.begin_window(10'000);
  for (ssd::Ppn page = 0; page < 40; ++page) lifetimes.dies(page, 10'100);
  const auto known = lifetimes.close_window(10'100);
  ASSERT_EQ(known.size(), 1u);
  EXPECT_NEAR(known[0].lifetime, 64.0 * 100 / 40, 1);
}

TEST(VStreamLifetimes, EachVStreamOfTheFilesystemHasASlot) {
  using ssd::vstream::slot_of;
  EXPECT_NE(slot_of(0), ssd::vstream::kDeadSlot);
  EXPECT_NE(slot_of(65'534), ssd::vstream::kDeadSlot);
  EXPECT_NE(slot_of(UINT16_MAX), ssd::vstream::kDeadSlot);
  EXPECT_NE(slot_of(65'533), slot_of(65'534));
}

class VStreamPolicy : public ::testing::TestWithParam<Clustering> {};

// Two vStreams: 1 dies at once, 2 lives long.
TEST_P(VStreamPolicy, SeparatesOnceSomethingIsKnownUnlessItIsLiteral) {
  ssd::Geometry device = small_device();
  device.user_pages = 4096;
  device.blocks = 512;
  VStream policy({VStreamGc::kAware, {2, 1000, GetParam()}});
  ssd::FlashWatcher* watcher = policy.watch(device);
  ssd::FrontierId hot = 0, cold = 0;
  ssd::Ppn at = 0, oldest = 0;
  for (uint64_t clock = 0; clock < 4000; ++clock) {
    const bool is_hot = clock % 2 == 0;
    PageWrite write{};
    write.vstream = is_hot ? 1 : 2;
    (is_hot ? hot : cold) = policy.for_write(write, clock);
    watcher->stored(at, written(clock, write.vstream));
    if (is_hot && at >= 8) watcher->dies(at - 8, clock);
    if (!is_hot && at >= 1500) watcher->dies(oldest += 2, clock);
    ++at;
  }
  if (GetParam() == Clustering::kLiteral) {
    EXPECT_EQ(hot, cold);
  } else {
    EXPECT_NE(hot, cold);
    watcher->read(at - 1);
    EXPECT_EQ(policy.for_copy(0, 0, 4000), 2 + cold);
  }
}

INSTANTIATE_TEST_SUITE_P(All, VStreamPolicy,
                         ::testing::Values(Clustering::kOurs, Clustering::kLiteral,
                                           Clustering::kLiteralSpread));

TEST(Yong2021, AScaleThatDoesNotDivideTheDeviceIsRefused) {
  const figures::Figure& figure = **figures::find_figure("yong2021-fig5");
  const auto run = figures::run_figure(figure, {.scale = 512});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, EINVAL);
  EXPECT_NE(run.error().context.find("does not divide"), std::string::npos);
}

}  // namespace
}  // namespace streamfs::lab
