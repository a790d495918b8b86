#include "learning/write_ages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "base/wire/model_table.h"

namespace streamfs::learning {
namespace {

constexpr uint64_t kAgedPages = 1 << 16;

TEST(AgeClass, PartsOfTheCapacity) {
  EXPECT_EQ(wire::age_class(0, kAgedPages), 1);
  EXPECT_EQ(wire::age_class(kAgedPages / 64 - 1, kAgedPages), 1);
  EXPECT_EQ(wire::age_class(kAgedPages / 64, kAgedPages), 2);
  EXPECT_EQ(wire::age_class(kAgedPages / 16, kAgedPages), 3);
  EXPECT_EQ(wire::age_class(kAgedPages / 4, kAgedPages), 4);
  EXPECT_EQ(wire::age_class(kAgedPages, kAgedPages), wire::kAgeOld);
  EXPECT_EQ(wire::age_class(1, 1), wire::kAgeOld);
}

TEST(WriteAges, WhatNobodySawWrittenIsOld) {
  const WriteAges ages(kAgedPages, kAgedPages, kAgedPages);
  EXPECT_EQ(ages.age_class(0, 0), wire::kAgeOld);
  EXPECT_EQ(ages.age_class(kAgedPages - 1, 1 << 20), wire::kAgeOld);
  EXPECT_EQ(ages.age_class(UINT64_MAX / 2, 0), wire::kAgeOld);
}

// Told apart to a 128th of the scale: an age that near to a border may be in the class beside it.
TEST(WriteAges, AgreesWithTheExactAge) {
  WriteAges ages(kAgedPages, kAgedPages, kAgedPages);
  std::vector<uint64_t> written(kAgedPages, UINT64_MAX);
  std::mt19937_64 random(11);
  constexpr uint64_t kNear = kAgedPages / 128;
  uint64_t known = 0;
  for (uint64_t clock = 0; clock < 40 * kAgedPages; ++clock) {
    // Half of the writes to a 32nd of the pages; some pages wait for dozens of scales.
    const uint64_t page = clock % 2 == 0 ? random() % (kAgedPages / 32) : random() % kAgedPages;
    if (written[page] != UINT64_MAX) {
      const uint64_t age = clock - written[page];
      const uint8_t found = ages.age_class(page, clock);
      ASSERT_GE(found, wire::age_class(age - std::min(age, kNear), kAgedPages)) << age;
      ASSERT_LE(found, wire::age_class(age + kNear, kAgedPages)) << age;
      ++known;
    }
    ages.wrote(page, 1, clock);
    written[page] = clock;
  }
  EXPECT_GT(known, 30 * kAgedPages);
}

TEST(WriteAges, WhatIsOldStaysOldHoweverFarTheClockJumps) {
  WriteAges ages(kAgedPages, kAgedPages, kAgedPages);
  ages.wrote(7, 1, 0);
  constexpr uint64_t kRound = kAgedPages / 128 * 255;  // times are the same again
  for (uint64_t clock = kRound; clock < 300 * kAgedPages; clock += kRound) {
    ages.wrote(9, 1, clock);
    ASSERT_EQ(ages.age_class(7, clock), wire::kAgeOld) << clock;
    ASSERT_EQ(ages.age_class(9, clock), 1) << clock;
  }
}

TEST(WriteAges, LittleMemoryMeansCoarserPlaces) {
  WriteAges ages(kAgedPages, kAgedPages, kAgedPages / 16);
  ages.wrote(32, 1, 0);
  EXPECT_EQ(ages.age_class(47, 1), 1) << "shares its byte";
  EXPECT_EQ(ages.age_class(48, 1), wire::kAgeOld);
  ages.wrote(kAgedPages - 1, 1000, 5);  // beyond the end: forgotten, no more
  EXPECT_EQ(ages.age_class(kAgedPages - 1, 6), 1);
}

TEST(WriteAges, ThreadsMayAskAndTellAtOnce) {
  WriteAges ages(kAgedPages, kAgedPages, kAgedPages);
  std::vector<std::jthread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&ages, thread] {
      for (uint64_t clock = 0; clock < 4 * kAgedPages; clock += 8) {
        const uint64_t page = (clock * 7 + thread * 8) % kAgedPages;
        const uint8_t found = ages.age_class(page, clock);
        ASSERT_TRUE(found >= 1 && found <= wire::kAgeOld);
        ages.wrote(page, 8, clock);
      }
    });
  }
}

}  // namespace
}  // namespace streamfs::learning
