#include "base/log_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "base/thread_histograms.h"

namespace streamfs {
namespace {

constexpr uint64_t kBeyond = uint64_t{1} << 37;

// Returns values of every octave: around each power of two, and at random.
std::vector<uint64_t> values_of_all_octaves() {
  std::mt19937_64 random(36);
  std::vector<uint64_t> out = {0};
  for (int power = 0; power < 37; ++power) {
    const uint64_t first = uint64_t{1} << power;
    for (const uint64_t value : {first - 1, first, first + 1})
      if (value <= kBeyond) out.push_back(value);
    for (int i = 0; i < 200; ++i) out.push_back(first + random() % first);
  }
  std::ranges::sort(out);
  return out;
}

LogHistogram histogram_of(const std::vector<uint64_t>& values) {
  LogHistogram out;
  for (const uint64_t value : values) {
    ++out.counts[LogBuckets::of(value)];
    out.sum += value;
  }
  return out;
}

TEST(LogBuckets, ContainTheirValues) {
  for (const uint64_t value : values_of_all_octaves()) {
    const size_t bucket = LogBuckets::of(value);
    ASSERT_LE(value, LogBuckets::up_to(bucket));
    ASSERT_TRUE(value == 0 ? bucket == 0 : value > LogBuckets::above(bucket)) << value;
  }
}

TEST(LogBuckets, CoverAllValuesWithoutGapOrOverlap) {
  uint64_t end = 0;
  for (size_t bucket = 0; bucket < LogBuckets::kCount; ++bucket) {
    EXPECT_EQ(LogBuckets::above(bucket), end);
    end = LogBuckets::up_to(bucket);
    EXPECT_EQ(LogBuckets::of(end), bucket);
  }
  EXPECT_EQ(LogBuckets::up_to(LogBuckets::kCount - 1), kBeyond);
  EXPECT_GT(kBeyond, uint64_t{60} * 1'000'000'000) << "a minute";
  EXPECT_EQ(LogBuckets::of(kBeyond + 1), LogBuckets::kCount - 1);
  EXPECT_EQ(LogBuckets::of(UINT64_MAX), LogBuckets::kCount - 1);
}

TEST(LogBuckets, GrowWithTheirValues) {
  size_t before = 0;
  for (const uint64_t value : values_of_all_octaves()) {
    ASSERT_GE(LogBuckets::of(value), before);
    before = LogBuckets::of(value);
  }
}

TEST(LogBuckets, HaveTwoSignificantDigits) {
  for (size_t bucket = 1; bucket < LogBuckets::kCount; ++bucket) {
    const double middle = LogBuckets::middle(bucket);
    for (const uint64_t value : {LogBuckets::above(bucket) + 1, LogBuckets::up_to(bucket)}) {
      const auto exact = static_cast<double>(value);
      EXPECT_LT(std::abs(middle - exact) / exact, 1.0 / 128) << value;
    }
  }
  for (uint64_t value = 1; value <= 128; ++value)
    EXPECT_EQ(LogBuckets::middle(LogBuckets::of(value)), static_cast<double>(value));
}

TEST(LogBuckets, EndAtPowersOfTwoOfBytesAndOfMicroseconds) {
  for (int power = 0; power < 27; ++power) {
    for (const uint64_t bound : {uint64_t{1} << power, uint64_t{1000} << power})
      EXPECT_EQ(LogBuckets::up_to(LogBuckets::of(bound)), bound);
  }
}

TEST(LogHistogram, QuantilesAreThoseOfTheSortedValues) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> times_ns(10, 2);
  for (const size_t count : {size_t{1}, size_t{2}, size_t{99}, size_t{100}, size_t{20'000}}) {
    std::vector<uint64_t> values(count);
    for (uint64_t& value : values) value = 1 + static_cast<uint64_t>(times_ns(random));
    const LogHistogram histogram = histogram_of(values);
    std::ranges::sort(values);
    EXPECT_EQ(histogram.count(), count);
    for (const double share : {0.001, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(count)));
      const auto exact = static_cast<double>(values[rank - 1]);
      EXPECT_NEAR(histogram.quantile(share), exact, exact / 128) << share << " of " << count;
    }
  }
  EXPECT_EQ(LogHistogram{}.quantile(0.5), 0);
}

TEST(LogHistogram, ADifferenceHasTheNewValuesAlone) {
  LogHistogram all = histogram_of({5, 5, 700, 1 << 20});
  const LogHistogram before = histogram_of({5, 700});
  const LogHistogram after = all.since(before);
  EXPECT_EQ(after.count(), 2U);
  EXPECT_EQ(after.sum, 5U + (1U << 20));
  EXPECT_EQ(after.quantile(0.5), 5);
  EXPECT_EQ(before.since(all).count(), 0U) << "counters that began anew";
}

TEST(ThreadHistograms, CountWhatAllThreadsAdd) {
  constexpr size_t kThreads = 24, kRounds = 2000;  // more threads than lines
  ThreadHistograms<2> histograms;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (uint64_t value = 0; value < kRounds; ++value) histograms.add(1, value * value);
    });
  }
  for (std::thread& each : threads) each.join();
  std::vector<uint64_t> values;
  for (size_t i = 0; i < kThreads; ++i)
    for (uint64_t value = 0; value < kRounds; ++value) values.push_back(value * value);
  const LogHistogram expected = histogram_of(values), found = histograms.sum(1);
  EXPECT_EQ(found.counts, expected.counts);
  EXPECT_EQ(found.sum, expected.sum);
  EXPECT_EQ(histograms.sum(0).count(), 0U);
}

}  // namespace
}  // namespace streamfs
