// Victim policies: each beside its definition, evaluated over every closed block.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/result.h"
#include "ssd/geometry.h"
#include "ssd/victim/cost_benefit.h"
#include "ssd/victim/fifo.h"
#include "ssd/victim/greedy.h"
#include "ssd/victim/registry.h"
#include "ssd/victim/view.h"
#include "ssd/victim/wear_aware.h"
#include "tests/unit/ssd/bare_device.h"

namespace streamfs::ssd {
namespace {

constexpr uint32_t kPagesPerBlock = 16;

double cost_benefit_score(const BlockView& view, uint64_t clock, double power) {
  if (view.valid == 0) return std::numeric_limits<double>::infinity();
  const double u = static_cast<double>(view.valid) / kPagesPerBlock;
  return (1 - u) / u * std::pow(static_cast<double>(clock - view.opened_at + 1), power);
}

// Adds, moves and removes blocks at random; each choice must score what the best block does.
template <typename Victim>
void expect_best(const std::function<double(const BlockView&, uint64_t clock)>& score) {
  Geometry geometry;
  geometry.pages_per_block = kPagesPerBlock;
  geometry.blocks = 64;
  Victim victim(geometry);
  std::map<BlockIndex, BlockView> closed;
  std::mt19937 random(3);
  std::vector<uint32_t> erases(geometry.blocks);
  for (uint64_t clock = 1; clock < 30'000; ++clock) {
    const auto block = static_cast<BlockIndex>(random() % geometry.blocks);
    const auto known = closed.find(block);
    if (known == closed.end()) {
      const auto valid = static_cast<uint32_t>(random() % (kPagesPerBlock + 1));
      const BlockView view{valid, clock - random() % std::min<uint64_t>(clock, 500), 0,
                           erases[block]};
      closed[block] = view;
      victim.add(block, view);
    } else if (uint32_t& valid = known->second.valid; valid > 0) {
      victim.moved(block, valid, valid - 1);
      --valid;
    }
    if (random() % 8 != 0) continue;
    const BlockIndex chosen = victim.choose(clock);
    ASSERT_TRUE(closed.contains(chosen));
    double best = 0;
    for (const auto& [other, view] : closed) best = std::max(best, score(view, clock));
    ASSERT_DOUBLE_EQ(score(closed[chosen], clock), best);
    victim.remove(chosen, closed[chosen].valid);
    closed.erase(chosen);
    ++erases[chosen];
  }
}

TEST(Victims, GreedyTakesTheFewestValidPages) {
  expect_best<Greedy>([](const BlockView& view, uint64_t) { return kPagesPerBlock - view.valid; });
}

TEST(Victims, CostBenefitTakesTheBestOfAllBlocks) {
  expect_best<CostBenefit>(
      [](const BlockView& view, uint64_t clock) { return cost_benefit_score(view, clock, 0.5); });
  expect_best<CostBenefitAge>(
      [](const BlockView& view, uint64_t clock) { return cost_benefit_score(view, clock, 1); });
}

TEST(Victims, WearAwareTakesTheBestOfAllBlocksAndAmongEmptyOnesTheLeastWorn) {
  expect_best<WearAware>([](const BlockView& view, uint64_t clock) {
    const double cost = view.valid == 0 ? 1e-6 : view.valid;
    return (kPagesPerBlock - view.valid) / cost * static_cast<double>(clock - view.opened_at + 1) /
           (view.erases + 1.0);
  });
}

TEST(Victims, FifoTakesBlocksInTheOrderTheyClosed) {
  Geometry geometry;
  geometry.blocks = 4;
  Fifo victim(geometry);
  EXPECT_EQ(victim.choose(0), kNoBlock);
  for (const BlockIndex block : {2u, 0u, 3u}) victim.add(block, {kPagesPerBlock, 0, 0, 0});
  victim.moved(3, kPagesPerBlock, 0);
  for (const BlockIndex block : {2u, 0u, 3u}) {
    EXPECT_EQ(victim.choose(0), block);
    victim.remove(block, kPagesPerBlock);
  }
}

TEST(Victims, AnUnknownNameListsTheKnownOnes) {
  const Error unknown = check_victim("magic", {}).error();
  EXPECT_EQ(unknown.code, EINVAL);
  for (const std::string& name : victim_names()) {
    EXPECT_NE(unknown.context.find(name), std::string::npos);
    EXPECT_TRUE(check_victim(name, {}).ok());
  }
  VictimOptions none;
  none.choices = 0;
  EXPECT_EQ(check_victim("d-choices", none).error().code, EINVAL);
}

constexpr Lpn kUserPages = 4096;

// Two streams, half of the pages never rewritten: policies that take blocks without a dead page
// must still get on, and a device without any must say so and not turn for ever.
class AnyVictim : public ::testing::TestWithParam<std::string> {
 protected:
  // Returns the result of `work` on a device with so many blocks more than user data needs.
  template <typename Work>
  int on_device(int spare_blocks, Work work) {
    Geometry geometry;
    geometry.user_pages = kUserPages;
    geometry.pages_per_block = 32;
    geometry.blocks = static_cast<uint32_t>(static_cast<int>(kUserPages) / 32 + spare_blocks);
    geometry.streams = 2;
    geometry.gc_mode = GcMode::kSameStream;
    return with_victim<int>(
        GetParam(), geometry, {},
        [&](auto& victim) {
          BareDevice device(geometry, victim);
          return work(device);
        },
        AllVictims{});
  }
};
INSTANTIATE_TEST_SUITE_P(Victims, AnyVictim, ::testing::ValuesIn(victim_names()));

TEST_P(AnyVictim, KeepsADeviceWithStaticDataGoing) {
  const int error = on_device(10, [](auto& device) {
    int failed = 0;
    for (Lpn page = 0; page < kUserPages && failed == 0; ++page)
      failed = device.ftl.write(page, 1, page < kUserPages / 2 ? 1 : 0, 0, nullptr);
    std::mt19937 random(6);
    for (int i = 0; i < 50'000 && failed == 0; ++i) {
      const auto page = static_cast<Lpn>(kUserPages / 2 + random() % (kUserPages / 2));
      failed = device.ftl.write(page, 1, 0, 0, nullptr);
    }
    EXPECT_GT(device.counters.erases, 1000u);
    return failed;
  });
  EXPECT_EQ(error, 0);
}

TEST_P(AnyVictim, SaysWhenADeviceIsFull) {
  const int full = on_device(-10, [](auto& device) {
    Lpn page = 0;
    while (page < kUserPages && device.ftl.write(page, 1, 0, 0, nullptr) == 0) ++page;
    EXPECT_GT(page, 3600u);
    return page < kUserPages ? device.ftl.write(page, 1, 0, 0, nullptr) : 0;
  });
  EXPECT_EQ(full, ENOSPC);
}

}  // namespace
}  // namespace streamfs::ssd
