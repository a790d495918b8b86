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
#include "emulator/counters.h"
#include "emulator/ftl/page_map.h"
#include "emulator/ftl/router.h"
#include "emulator/geometry.h"
#include "emulator/media/null_media.h"
#include "emulator/policy/victim/cost_benefit.h"
#include "emulator/policy/victim/fifo.h"
#include "emulator/policy/victim/greedy.h"
#include "emulator/policy/victim/registry.h"
#include "emulator/policy/victim/view.h"
#include "emulator/policy/victim/wear_aware.h"

namespace streamfs::emulator {
namespace {

constexpr uint32_t kPages = 16;

double cost_benefit_score(const BlockView& view, uint64_t clock, double power) {
  if (view.valid == 0) return std::numeric_limits<double>::infinity();
  const double u = static_cast<double>(view.valid) / kPages;
  return (1 - u) / u * std::pow(static_cast<double>(clock - view.opened_at + 1), power);
}

// Adds, moves and removes blocks at random; each choice must score what the best block does.
template <typename Victim>
void expect_best(const std::function<double(const BlockView&, uint64_t clock)>& score) {
  Geometry geometry;
  geometry.pages_per_block = kPages;
  geometry.blocks = 64;
  Victim victim(geometry);
  std::map<BlockIndex, BlockView> closed;
  std::mt19937 random(3);
  std::vector<uint32_t> erases(geometry.blocks);
  for (uint64_t clock = 1; clock < 30'000; ++clock) {
    const auto block = static_cast<BlockIndex>(random() % geometry.blocks);
    const auto known = closed.find(block);
    if (known == closed.end()) {
      const auto valid = static_cast<uint32_t>(random() % (kPages + 1));
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
  expect_best<Greedy>([](const BlockView& view, uint64_t) { return kPages - view.valid; });
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
    return (kPages - view.valid) / cost * static_cast<double>(clock - view.opened_at + 1) /
           (view.erases + 1.0);
  });
}

TEST(Victims, FifoTakesBlocksInTheOrderTheyClosed) {
  Geometry geometry;
  geometry.blocks = 4;
  Fifo victim(geometry);
  EXPECT_EQ(victim.choose(0), kNoBlock);
  for (const BlockIndex block : {2u, 0u, 3u}) victim.add(block, {kPages, 0, 0, 0});
  victim.moved(3, kPages, 0);
  for (const BlockIndex block : {2u, 0u, 3u}) {
    EXPECT_EQ(victim.choose(0), block);
    victim.remove(block, kPages);
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

// Two streams, half of the pages never rewritten: policies that take blocks without a dead page
// must still get on, and a device without any must say so and not turn for ever.
TEST(Victims, EveryOneKeepsADeviceWithStaticDataGoingUntilItIsFull) {
  for (const std::string& name : victim_names()) {
    Geometry geometry;
    geometry.user_pages = 4096;
    geometry.pages_per_block = 32;
    geometry.blocks = 4096 / 32 + 10;
    geometry.streams = 2;
    geometry.gc_mode = GcMode::kSameStream;
    const int error = with_victim<int>(
        name, geometry, {},
        [&](auto& victim) {
          NullMedia media;
          StreamRouter router(geometry);
          Counters counters;
          LiveCounts live;
          PageMap ftl(geometry, media, victim, router, counters, live);
          int failed = 0;
          for (Lpn page = 0; page < 4096 && failed == 0; ++page)
            failed = ftl.write(page, 1, page < 2048 ? 1 : 0, 0, nullptr);
          std::mt19937 random(6);
          for (int i = 0; i < 50'000 && failed == 0; ++i)
            failed = ftl.write(static_cast<Lpn>(2048 + random() % 2048), 1, 0, 0, nullptr);
          EXPECT_GT(counters.erases, 1000u) << name;
          return failed;
        },
        AllVictims{});
    EXPECT_EQ(error, 0) << name;
    geometry.blocks = 4096 / 32 - 10;
    const int full = with_victim<int>(
        name, geometry, {},
        [&](auto& victim) {
          NullMedia media;
          StreamRouter router(geometry);
          Counters counters;
          LiveCounts live;
          PageMap ftl(geometry, media, victim, router, counters, live);
          Lpn page = 0;
          while (page < 4096 && ftl.write(page, 1, 0, 0, nullptr) == 0) ++page;
          EXPECT_GT(page, 3600u) << name;
          return page < 4096 ? ftl.write(page, 1, 0, 0, nullptr) : 0;
        },
        AllVictims{});
    EXPECT_EQ(full, ENOSPC) << name;
  }
}

}  // namespace
}  // namespace streamfs::emulator
