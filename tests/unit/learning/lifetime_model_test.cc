#include "learning/lifetime_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/wire/model_table.h"
#include "learning/landmarks.h"
#include "learning/logistic.h"

namespace streamfs::learning {
namespace {

constexpr uint64_t kLive = 16384;

float write_one(LifetimeModel& model, uint64_t page, uint16_t vstream = 0,
                std::span<const uint8_t> expected = {}) {
  float found = -1;
  model.write(
      {.page = page, .pages = 1, .whole_pages = 1, .vstream = vstream, .expected = expected},
      [&](float lifetime, bool) { found = lifetime; });
  return found;
}

double mean(const std::vector<float>& of) {
  return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
}

TEST(LifetimeModel, HotAndColdPagesComeApart) {
  LifetimeModel model(kLive, kLive);
  std::mt19937 random(3);
  std::array<std::vector<float>, 2> lifetimes;  // cold, hot
  for (uint64_t i = 0; i < 20 * kLive; ++i) {
    const bool hot = i % 2 == 0;
    const uint64_t page = hot ? random() % 64 : 64 + random() % (kLive - 64);
    const float lifetime = write_one(model, page);
    if (i > 15 * kLive) lifetimes[hot ? 1 : 0].push_back(lifetime);
  }
  EXPECT_LT(mean(lifetimes[1]), 1);
  EXPECT_GT(mean(lifetimes[0]), mean(lifetimes[1]) + 3);
}

TEST(LifetimeModel, WhatIsForgottenIsNotTakenForDead) {
  // A sixteenth of the device is remembered; most of it is written once and lives for ever.
  LifetimeModel model(16 * kLive, kLive, kLive * sizeof(PageLife));
  std::mt19937 random(5);
  std::array<std::vector<float>, 2> lifetimes;  // lasting, brief
  uint64_t lasting = 64;
  for (uint64_t i = 0; i < 12 * kLive; ++i) {
    const bool brief = i % 2 == 0;
    const float lifetime = write_one(model, brief ? random() % 64 : lasting++, brief ? 1 : 2);
    if (i > 9 * kLive) lifetimes[brief ? 1 : 0].push_back(lifetime);
  }
  EXPECT_LT(mean(lifetimes[1]), 1);
  EXPECT_GT(mean(lifetimes[0]), 0.9 * double{model.landmarks().longest()});
}

TEST(LifetimeModel, LongAndVeryLongComeApart) {
  // Two halves, each rewritten in order, one three times as often: both live about as long as it
  // takes to write all that is live, or longer.
  LifetimeModel model(kLive, kLive);
  std::array<std::vector<float>, 2> lifetimes;
  std::array<uint64_t, 2> at{};
  for (uint64_t i = 0; i < 20 * kLive; ++i) {
    const uint32_t half = i % 4 == 0 ? 1 : 0;
    const float lifetime = write_one(model, half * kLive / 2 + at[half]++ % (kLive / 2));
    if (i > 15 * kLive) lifetimes[half].push_back(lifetime);
  }
  // 2/3 and 2 of what is live: log2 3 apart.
  EXPECT_GT(mean(lifetimes[1]), mean(lifetimes[0]) + 1);
}

TEST(LifetimeModel, ATrimIsADeath) {
  LifetimeModel model(kLive, kLive);
  float last = 0;
  for (uint64_t round = 0; round < 400; ++round) {
    const uint64_t first = round * 64 % kLive;
    for (uint64_t i = 0; i < 64; ++i) last = write_one(model, first + i);
    model.trim(first, 64);
  }
  EXPECT_LT(last, 1);
}

TEST(LifetimeModel, ATablesWordIsHeard) {
  // Pages written in turn, trimmed after 16 or 4096 more: only the table can tell which.
  LifetimeModel model(1 << 20, kLive);
  const std::vector<uint8_t> brief(wire::kShapes, 9), lasting(wire::kShapes, 25);
  std::mt19937 random(4);
  std::array<std::vector<float>, 2> lifetimes;
  std::deque<std::pair<uint64_t, uint64_t>> waiting[2];
  for (uint64_t i = 0; i < 12 * kLive; ++i) {
    const uint32_t kind = random() % 2;
    const uint64_t page = random() % (1 << 20);
    const float lifetime = write_one(model, page, 0, kind == 0 ? brief : lasting);
    waiting[kind].emplace_back(i + (kind == 0 ? 16 : 4096), page);
    for (auto& queue : waiting) {
      while (!queue.empty() && queue.front().first <= i) {
        model.trim(queue.front().second, 1);
        queue.pop_front();
      }
    }
    if (i > 9 * kLive) lifetimes[kind].push_back(lifetime);
  }
  EXPECT_GT(mean(lifetimes[1]), mean(lifetimes[0]) + 2);
}

TEST(LifetimeModel, WhatLiesBeyondTheDeviceIsLeftAlone) {
  LifetimeModel model(1, kLive);
  EXPECT_EQ(write_one(model, uint64_t{1} << 50), model.landmarks().longest());
  EXPECT_EQ(model.clock(), 0U);
  model.trim(uint64_t{1} << 50, 10);
  model.trim(0, UINT64_MAX);
}

TEST(Landmarks, AscendHoweverLittleIsLive) {
  for (const uint64_t live : {uint64_t{1}, uint64_t{100}, uint64_t{1} << 40}) {
    const Landmarks landmarks(live);
    for (size_t j = 1; j < landmarks.ages().size(); ++j) {
      EXPECT_LT(landmarks.ages()[j - 1], landmarks.ages()[j]);
    }
  }
}

TEST(Landmarks, CertaintiesAreTheEndsOfTheAxis) {
  const Landmarks landmarks(kLive);
  Scores never{}, always{};
  never.fill(-50);
  always.fill(50);
  EXPECT_NEAR(landmarks.lifetime(never), 0, 1e-3);
  EXPECT_NEAR(landmarks.lifetime(always), landmarks.longest(), 1e-3);
  // Nobody lives on who has died: a later landmark cannot be likelier.
  Scores odd = never;
  odd.back() = 50;
  EXPECT_NEAR(landmarks.lifetime(odd), 0, 1e-3);
}

}  // namespace
}  // namespace streamfs::learning
