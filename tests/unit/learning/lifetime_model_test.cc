#include "learning/lifetime_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace streamfs::learning {
namespace {

constexpr uint64_t kLive = 16384;

uint32_t write_one(LifetimeModel& model, uint64_t page, uint16_t vstream = 0) {
  uint32_t found = 0;
  model.write({.page = page, .pages = 1, .whole_pages = 1, .vstream = vstream},
              [&](uint32_t cls) { found = cls; });
  return found;
}

TEST(LifetimeModel, HotAndColdPagesComeApart) {
  LifetimeModel model(kLive, kLive, 8);
  std::mt19937 random(3);
  std::array<std::vector<uint32_t>, 2> classes;  // cold, hot
  for (uint64_t i = 0; i < 20 * kLive; ++i) {
    const bool hot = i % 2 == 0;
    const uint64_t page = hot ? random() % 64 : 64 + random() % (kLive - 64);
    const uint32_t cls = write_one(model, page);
    if (i > 15 * kLive) classes[hot ? 1 : 0].push_back(cls);
  }
  const auto mean = [](const std::vector<uint32_t>& of) {
    double sum = 0;
    for (const uint32_t cls : of) sum += cls;
    return sum / static_cast<double>(of.size());
  };
  EXPECT_GT(mean(classes[0]), mean(classes[1]) + 3);
}

TEST(LifetimeModel, ATrimIsADeath) {
  LifetimeModel model(kLive, kLive, 2);  // landmark: an eighth of what is live
  uint32_t last = 1;
  for (uint64_t round = 0; round < 400; ++round) {
    const uint64_t first = round * 64 % kLive;
    for (uint64_t i = 0; i < 64; ++i) last = write_one(model, first + i);
    model.trim(first, 64);
  }
  EXPECT_EQ(last, 0U);
}

TEST(LifetimeModel, WhatLiesBeyondTheDeviceIsLeftAlone) {
  LifetimeModel model(1, kLive, 8);
  EXPECT_EQ(write_one(model, uint64_t{1} << 50), model.classes() - 1);
  EXPECT_EQ(model.clock(), 0U);
  model.trim(uint64_t{1} << 50, 10);
  model.trim(0, UINT64_MAX);
}

TEST(LifetimeModel, AsManyClassesAsAreAskedFor) {
  for (uint32_t classes = 1; classes <= 9; ++classes) {
    const LifetimeModel model(kLive, kLive, classes);
    EXPECT_EQ(model.classes(), classes);
    for (size_t j = 1; j < model.landmarks().size(); ++j) {
      EXPECT_LT(model.landmarks()[j - 1], model.landmarks()[j]);
    }
  }
  EXPECT_EQ(LifetimeModel(kLive, kLive, 200).classes(), 9U);
  EXPECT_LE(LifetimeModel(kLive, 1, 8).classes(), 2U) << "landmarks that are the same are one";
}

}  // namespace
}  // namespace streamfs::learning
