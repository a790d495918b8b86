// Tests of the tables of histograms, and of what stands for an older mount.
#include "fuse-fs/tools/histograms.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace streamfs::tools {
namespace {

using nlohmann::json;

json sizes_with(json buckets) {
  return {
      {"sizes",
       {{{"side", "kernel"}, {"op", "read"}, {"sum_bytes", 0}, {"buckets", json::array()}},
        {{"side", "kernel"}, {"op", "write"}, {"sum_bytes", 9}, {"buckets", std::move(buckets)}}}}};
}

TEST(HistogramsText, ARowHasTheRequestsThatItsSizeHoldsAndTheRowAboveDoesNot) {
  const json metrics = sizes_with({{2016, 2048, 1}, {4032, 4064, 2}, {4064, 4096, 3}});
  const auto found = histograms_between({}, metrics, Measure::kSizes);
  ASSERT_TRUE(found);
  const std::string text = histograms_text(*found, Measure::kSizes, Style{.raw = true});
  EXPECT_EQ(text,
            "   at most  kernel write\n"
            "      2048             1\n"
            "      4096             5\n")
      << "a column without requests is left out";
}

TEST(HistogramsText, TimesEndWithTheirPercentiles) {
  const json metrics = {
      {"ops",
       {{{"op", "fsync"},
         {"sum_ns", 1},
         {"buckets", {{1984, 2000, 99}, {uint64_t{127} << 30, uint64_t{1} << 37, 1}}}}}}};
  const auto found = histograms_between({}, metrics, Measure::kTimes);
  ASSERT_TRUE(found);
  const std::string text = histograms_text(*found, Measure::kTimes, Style{});
  EXPECT_EQ(text.find("   at most   fsync\n       2us      99\n       4us       0\n"), 0U) << text;
  EXPECT_NE(
      text.find("\n      more       1\n       p50  1.99us\n       p99  1.99us\n     p99.9    137s"),
      std::string::npos)
      << text;
}

TEST(HistogramsText, AnIntervalWithoutRequestsSaysSo) {
  const json metrics = sizes_with({{4064, 4096, 3}});
  const auto found = histograms_between(metrics, metrics, Measure::kSizes);
  ASSERT_TRUE(found);
  EXPECT_EQ(histograms_text(*found, Measure::kSizes, Style{}), "no requests\n");
}

TEST(Histograms, OfAMountThatReportsNoneAreUnknown) {
  const json older = {{"ops", {{{"op", "read"}, {"sum_ns", 1}, {"counts", {1}}}}}};
  EXPECT_FALSE(histograms_between({}, older, Measure::kTimes));
  EXPECT_FALSE(histograms_between({}, older, Measure::kSizes));
  EXPECT_FALSE(histograms_between({}, {}, Measure::kTimes));
}

TEST(Durations, HaveThreeDigitsAndTheirUnit) {
  const Style human{};
  EXPECT_EQ(duration_text(999, human), "999ns");
  EXPECT_EQ(duration_text(999.6, human), "1us");
  EXPECT_EQ(duration_text(16'384'000, human), "16.4ms");
  EXPECT_EQ(duration_text(999'600'000, human), "1s");
  EXPECT_EQ(duration_text(16'384'000, Style{.raw = true}), "16384000");
}

}  // namespace
}  // namespace streamfs::tools
