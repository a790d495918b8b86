// Blocks that fail: from the factory, while programming, while erasing. Nothing is lost, and a
// device without spare says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/image.h"
#include "ssd/layout.h"
#include "ssd/media/nand_faults.h"
#include "ssd/ssd.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

constexpr uint64_t kFailingPages = 2048;

GeometryRequest failing(bool plp, double program, double erase, uint64_t seed) {
  GeometryRequest request = small_device(3, plp, kFailingPages * kPageBytes);
  request.spare = 0.6;
  request.failures = {static_cast<uint32_t>(program * 1e9), static_cast<uint32_t>(erase * 1e9),
                      seed};
  return request;
}

class Failures : public SsdTest {
 protected:
  // Random writes, trims and flushes until the device refuses one, or `most`; how many it took.
  int wear(Ssd& ssd, int most) {
    std::mt19937_64 random(1);
    for (int i = 0; i < most; ++i) {
      const uint64_t pages = 1 + random() % 30, page = random() % (kFailingPages - pages);
      const uint64_t what = random() % 16, version = what == 0 ? 0 : ++version_;
      if (what == 1) {
        if (const Result<void> done = ssd.flush(); !done.ok()) {
          EXPECT_EQ(done.error().code, ENOSPC);
          return i;
        }
        continue;
      }
      const auto stream = PStreamId(static_cast<uint16_t>(random() % 3));
      const Result<void> done = version == 0
                                    ? ssd.trim(page, pages)
                                    : ssd.write(page, content(page, pages, version), {}, stream);
      if (!done.ok()) {
        EXPECT_EQ(done.error().code, ENOSPC);
        for (uint64_t p = page; p < page + pages; ++p)  // each page is the old or the new one
          if (same_bytes(get(ssd, p, 1), content(p, 1, version))) model_[p] = version;
        return i;
      }
      std::fill_n(model_.begin() + static_cast<ptrdiff_t>(page), pages, version);
    }
    return most;
  }

  std::vector<uint64_t> model_ = std::vector<uint64_t>(kFailingPages);
};

class WornOut : public Failures,
                public ::testing::WithParamInterface<std::tuple<bool, uint64_t>> {};
INSTANTIATE_TEST_SUITE_P(PlpAndSeed, WornOut,
                         ::testing::Combine(::testing::Bool(), ::testing::Range<uint64_t>(1, 7)));

TEST_P(WornOut, LosesNothingUntilTheSpareIsUsedUpAndNothingThen) {
  const auto [plp, seed] = GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  create(failing(plp, 0.004, 0.004, seed));
  auto ssd = open();
  const int most = 200'000;
  EXPECT_LT(wear(*ssd, most), most);
  const SsdStats stats = ssd->stats();
  EXPECT_EQ(stats.bad_blocks, stats.program_failures + stats.erase_failures);
  EXPECT_GT(stats.program_failures, 5u);
  EXPECT_GT(stats.erase_failures, 0u);
  EXPECT_GT(stats.gc_bytes, 0u);
  check(*ssd, model_);
  if (!plp) return;  // unflushed data may go with the process
  ssd.reset();
  ssd = open();
  EXPECT_EQ(ssd->stats().bad_blocks, stats.bad_blocks);
  check(*ssd, model_);
  EXPECT_EQ(ssd->write(0, content(0, 1000, 1), {}, {}).error().code, ENOSPC);
  ASSERT_TRUE(ssd->trim(0, 10).ok());
  EXPECT_EQ(get(*ssd, 0, 10), content(0, 10, 0));
}

TEST_F(Failures, WhatWasFlushedBesideFailingBlocksSurvivesTheEndOfTheProcess) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    create(failing(false, 0.01, 0, seed));
    std::fill(model_.begin(), model_.end(), 0);
    auto ssd = open();
    wear(*ssd, 300);
    ASSERT_TRUE(ssd->flush().ok());
    EXPECT_GT(ssd->stats().program_failures, 0u);
    ssd.reset();
    check(*open(), model_);
    if (HasFatalFailure()) return;
  }
}

// Fails one program: the next.
class FailsOnce final : public NandFaults {
 public:
  bool program_fails(BlockIndex, uint32_t, uint32_t) override {
    return std::exchange(armed, false);
  }
  bool armed = false;
};

TEST_F(Failures, AFlushWhosePaddingFailsIsAFlush) {
  create(small_device(4, false));
  FailsOnce nand;
  auto ssd = open({.faults = &nand});
  put(*ssd, 0, 20, 1, 1);
  put(*ssd, 100, 3, 1, 2);
  nand.armed = true;
  ASSERT_TRUE(ssd->flush().ok());
  EXPECT_EQ(ssd->stats().program_failures, 1u);
  EXPECT_EQ(ssd->stats().bad_blocks, 1u);
  ssd.reset();
  ssd = open();
  EXPECT_EQ(get(*ssd, 0, 20), content(0, 20, 1));
  EXPECT_EQ(get(*ssd, 100, 3), content(100, 3, 1));
}

TEST_F(Failures, TheSameSeedFailsInTheSamePlaces) {
  SsdStats stats[2];
  for (SsdStats& result : stats) {
    create(failing(true, 0.002, 0.002, 3));
    const auto ssd = open();
    wear(*ssd, 5000);
    result = ssd->stats();
  }
  EXPECT_GT(stats[0].program_failures, 0u);
  EXPECT_EQ(stats[0].program_failures, stats[1].program_failures);
  EXPECT_EQ(stats[0].erases, stats[1].erases);
  EXPECT_EQ(stats[0].gc_bytes, stats[1].gc_bytes);
}

TEST_F(Failures, BlocksThatAreBadFromTheFactoryAreNeverUsed) {
  GeometryRequest request = failing(true, 0, 0, 5);
  request.bad_blocks = 9;
  create(request);
  const std::vector<BlockIndex> bad = factory_bad_blocks(*plan_geometry(request));
  EXPECT_EQ(std::set<BlockIndex>(bad.begin(), bad.end()).size(), 9u);
  {
    const auto ssd = open();
    EXPECT_EQ(ssd->stats().bad_blocks, 9u);
    EXPECT_EQ(wear(*ssd, 3000), 3000);
    check(*ssd, model_);
  }
  const auto image = Image::open(path_, Image::Access::kHoldRead, 0);
  const auto is_bad = [&](BlockIndex b) { return std::ranges::find(bad, b) != bad.end(); };
  const uint32_t per_block = (*image)->geometry().pages_per_block;
  for (BlockIndex block = 0; block < (*image)->geometry().blocks; ++block)
    EXPECT_EQ((*image)->spare()[block * per_block].sequence == 0, is_bad(block)) << block;
}

}  // namespace
}  // namespace streamfs::ssd
