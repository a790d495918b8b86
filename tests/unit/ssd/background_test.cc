// Background work: what idle time is worth, where it stops, and that it is counted apart.
#include "ssd/background.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/ssd.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

constexpr uint64_t kPages = 4096;

class Background : public SsdTest {
 protected:
  // A full device whose blocks have died in part: runs of it are overwritten once.
  std::unique_ptr<Ssd> used() {
    GeometryRequest request = small_device(1);
    request.spare = 0.5;
    create(request);
    auto ssd = open();
    std::mt19937_64 random(1);
    for (uint64_t page = 0; page < kPages; page += 32) write(*ssd, page, 32);
    while (ssd->urgency() < Urgency::kHigh) write(*ssd, random() % (kPages - 24), 24);
    return ssd;
  }
  void write(Ssd& ssd, uint64_t page, uint64_t pages) {
    put(ssd, page, pages, ++version_);
    std::fill_n(model_.begin() + static_cast<ptrdiff_t>(page), pages, version_);
  }
  std::vector<uint64_t> model_ = std::vector<uint64_t>(kPages);
};

TEST_F(Background, IdleTimeFreesBlocksAndABurstThenCollectsNothing) {
  const auto ssd = used();
  ssd->reset_stats();
  const IdleReport report = ssd->run_idle({.valid_limit = 0.9});
  EXPECT_EQ(report.end, IdleReport::End::kNothingLeft);
  EXPECT_EQ(ssd->urgency(), Urgency::kNone);
  EXPECT_GT(report.erases, 5u);
  const SsdStats idle = ssd->stats();
  EXPECT_EQ(idle.idle_gc_bytes, report.gc_pages * kPageBytes);
  EXPECT_EQ(idle.gc_bytes, idle.idle_gc_bytes);
  for (uint64_t page = 0; page < 256; page += 32) write(*ssd, page, 32);
  EXPECT_EQ(ssd->stats().gc_bytes, idle.gc_bytes);
  check(*ssd, model_);
}

TEST_F(Background, AsManyBlocksAreFreedAsABurstTook) {
  const auto ssd = used();
  const Geometry units = ssd->geometry().in_map_units();
  (void)ssd->run_idle({.valid_limit = 0.9});  // a burst begins
  constexpr uint64_t kBurstBlocks = 25;
  for (uint64_t page = 0; page < kBurstBlocks * units.pages_per_block; page += 32)
    write(*ssd, page, 32);
  EXPECT_EQ(ssd->run_idle({.valid_limit = 0.9}).end, IdleReport::End::kNothingLeft);
  EXPECT_GE(ssd->stats().free_blocks, blocks_for_burst(units, kBurstBlocks));
  EXPECT_GT(blocks_for_burst(units, kBurstBlocks), wanted_free_blocks(units, {}));
}

// Where the host's own victims are mostly valid, others that are so are no dearer.
TEST_F(Background, AVictimMayBeAsValidAsTheHostsAre) {
  for (const double dearer : {1.2, 0.01}) {
    GeometryRequest request = small_device(1);
    request.spare = 0.1;
    create(request);
    const auto ssd = open();
    std::mt19937_64 random(1);
    for (uint64_t page = 0; page < kPages; page += 32) put(*ssd, page, 32, 1);
    for (int i = 0; i < 4000; ++i) put(*ssd, random() % kPages, 1, 2);
    const uint32_t some = ssd->geometry().low_water + 3u;
    (void)ssd->run_idle({.free_blocks = some, .valid_limit = 1});
    ASSERT_EQ(ssd->urgency({.free_blocks = some + 1}), Urgency::kLow);
    const IdleReport report = ssd->run_idle({.free_blocks = some + 1, .dearer = dearer});
    EXPECT_EQ(report.gc_pages > 0, dearer > 1) << report.gc_pages;
  }
}

TEST_F(Background, OnTheVirtualClockItEndsWithTheIdleTime) {
  uint64_t copied[2];
  for (const bool is_long : {false, true}) {
    const auto ssd = used();
    const IdleReport report = ssd->run_idle(
        {.free_blocks = 60, .valid_limit = 0.9, .idle_ns = is_long ? 1'000'000'000'000U : 1U});
    EXPECT_EQ(report.end == IdleReport::End::kDeadline, !is_long);
    copied[is_long] = report.gc_pages;
  }
  EXPECT_LT(copied[0], copied[1]);
}

// Cost-benefit prefers an old block to an emptier young one.
TEST_F(Background, AnEmptyEnoughBlockIsCollectedWhateverThePolicyPrefers) {
  GeometryRequest request = small_device(1);
  request.spare = 0.5;
  request.victim = VictimKind::kCostBenefit;
  create(request);
  const auto ssd = open();
  constexpr uint64_t kBlock = 32, kYoung = kPages / 2, kYoungEnd = kYoung + 32 * kBlock;
  for (uint64_t page = 0; page < kPages; page += kBlock) put(*ssd, page, kBlock, 1);
  for (uint64_t page = 0; page < kYoung; page += kBlock) put(*ssd, page, 1, 2);
  for (uint64_t page = kYoung; page < kYoungEnd; page += kBlock) put(*ssd, page, kBlock, 2);
  for (uint64_t page = kYoungEnd - 2 * kBlock; page < kYoungEnd; page += kBlock)
    put(*ssd, page, 4, 3);
  // Asks for one more free block each time, until no block without a live page is left.
  const auto idle = [&](double valid_limit) {
    const auto more = static_cast<uint32_t>(ssd->stats().free_blocks) + 1;
    return ssd->run_idle({.free_blocks = more, .valid_limit = valid_limit});
  };
  while (idle(0.01).erases > 0) {
  }
  EXPECT_EQ(idle(0.01).gc_pages, 0U);
  EXPECT_GT(idle(0.9).gc_pages, 0U);
}

TEST_F(Background, BlocksMostlyValidAreLeftAlone) {
  const auto ssd = used();
  const IdleReport report = ssd->run_idle({.free_blocks = 40, .valid_limit = 0.01});
  const auto moved = report.gc_pages;
  EXPECT_LT(ssd->urgency({.free_blocks = 40}), Urgency::kCritical);
  EXPECT_NE(ssd->urgency({.free_blocks = 40}), Urgency::kNone);
  EXPECT_GT(ssd->run_idle({.free_blocks = 40, .valid_limit = 0.9}).gc_pages, moved);
  check(*ssd, model_);
}

TEST_F(Background, StopsWhenToldAtItsDeadlineAndAtItsPages) {
  const auto ssd = used();
  EXPECT_EQ(ssd->run_idle({.stop = [] { return true; }}).end, IdleReport::End::kStopped);
  const auto past = std::chrono::steady_clock::now();
  EXPECT_EQ(ssd->run_idle({.deadline = past}).end, IdleReport::End::kDeadline);
  EXPECT_EQ(ssd->stats().idle_gc_bytes, 0u);
  const IdleReport some = ssd->run_idle({.pages = 70, .free_blocks = 60, .valid_limit = 0.9});
  EXPECT_EQ(some.end, IdleReport::End::kPages);
  EXPECT_EQ(some.gc_pages, 70u);
  int steps = 0;
  const IdleReport two =
      ssd->run_idle({.stop = [&] { return ++steps > 2; }, .free_blocks = 60, .valid_limit = 0.9});
  EXPECT_EQ(two.end, IdleReport::End::kStopped);
  EXPECT_LE(two.gc_pages, 2 * 64u);
  check(*ssd, model_);
}

TEST_F(Background, UrgencyGrowsAsFreeBlocksGo) {
  create(small_device(1));
  const auto ssd = open();
  Urgency last = ssd->urgency();
  EXPECT_EQ(last, Urgency::kNone);
  std::vector<bool> seen(4);
  for (uint64_t page = 0; page < kPages; page += 8) {
    put(*ssd, page, 8, 1);
    EXPECT_GE(ssd->urgency({.free_blocks = 60}), last);
    last = ssd->urgency({.free_blocks = 60});
    seen[static_cast<size_t>(last)] = true;
  }
  for (uint64_t i = 0; i < 400; ++i) {
    put(*ssd, i * 8, 8, 2);
    seen[static_cast<size_t>(ssd->urgency({.free_blocks = 60}))] = true;
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](bool s) { return s; }));
}

TEST_F(Background, WearIsLevelledWhereDataLiesStill) {
  constexpr int kMostSteps =
      20'000;  // several times what is needed: a break must not turn for ever
  int steps = 0;
  const auto stop = [&] { return ++steps > kMostSteps; };
  for (const bool levels : {false, true}) {
    create(small_device(1));
    const auto ssd = open();
    for (uint64_t page = 0; page < kPages; page += 32) write(*ssd, page, 32);
    std::mt19937_64 random(2);
    for (int i = 0; i < 20'000; ++i) {
      write(*ssd, random() % 512, 4);  // an eighth is hot, the rest lies still
      if (!levels || i % 50 != 0) continue;
      (void)ssd->run_idle({.stop = stop, .valid_limit = 0, .wear_spread = 8});
      ASSERT_LE(steps, kMostSteps) << "it finds something to level again and again";
    }
    const Wear wear = ssd->wear();
    EXPECT_EQ(wear.most - wear.least > 20, !levels) << wear.least << " to " << wear.most;
    EXPECT_EQ(ssd->stats().wear_bytes > 0, levels);
    check(*ssd, model_);
  }
}

TEST_F(Background, TheHostWorksBesideIt) {
  const auto ssd = used();
  std::atomic<bool> over{false};
  std::thread idle([&] {
    while (!over) (void)ssd->run_idle({.stop = [&] { return over.load(); }, .valid_limit = 0.9});
  });
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) write(*ssd, random() % (kPages - 20), 20);
  over = true;
  idle.join();
  check(*ssd, model_);
}

}  // namespace
}  // namespace streamfs::ssd
