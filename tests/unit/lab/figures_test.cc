// The figures as a whole: names, options, the report. tests/figures checks each figure's rows.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/result.h"
#include "lab/figures/figure.h"
#include "lab/figures/parallel.h"
#include "lab/figures/report.h"

namespace streamfs::lab::figures {
namespace {

TEST(Figures, UnknownOneIsRefusedWithTheKnown) {
  const Result<const Figure*> found = find_figure("figure-8");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, EINVAL);
  for (const Figure& figure : all_figures())
    EXPECT_NE(found.error().context.find(figure.name), std::string::npos);
}

TEST(Figures, NamesAreUnique) {
  std::set<std::string> names;
  for (const Figure& figure : all_figures()) EXPECT_TRUE(names.insert(figure.name).second);
}

TEST(Figures, ScaleWithoutADeviceIsRefused) {
  const Figure figure{.name = "one", .source = "a paper"};
  EXPECT_EQ(run_figure(figure, {.scale = 2}).error().code, EINVAL);
}

TEST(Figures, SpreadIsFromLeastToMost) {
  const Measured measured = over_seeds(std::array{3.0, 1.0, 2.0});
  EXPECT_DOUBLE_EQ(measured.mean, 2);
  EXPECT_DOUBLE_EQ(measured.spread(), 2);
  EXPECT_EQ(measured.seeds, 3u);
}

TEST(Figures, ParallelRunsEachIndexOnce) {
  std::array<std::atomic<int>, 100> seen{};
  ASSERT_TRUE(in_parallel(4, seen.size(), [&](size_t i) -> Result<void> {
                ++seen[i];
                return {};
              }).ok());
  for (const std::atomic<int>& count : seen) EXPECT_EQ(count, 1);
}

TEST(Figures, ParallelReturnsTheErrorAndBeginsNoMore) {
  std::atomic<int> run{0};
  const Result<void> done = in_parallel(1, 100, [&](size_t i) -> Result<void> {
    ++run;
    if (i == 3) return Error{ENOSPC, "full"};
    return {};
  });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ENOSPC);
  EXPECT_EQ(run, 4);
}

TEST(Figures, MeanOfEqualValuesLiesBetweenLeastAndMost) {
  constexpr double kValue = 0.8666666666666667;  // the sum of five is rounded down
  const Measured measured = over_seeds(std::array{kValue, kValue, kValue, kValue, kValue});
  EXPECT_EQ(measured.mean, kValue);
}

TEST(Figures, NumbersAreRoundedToThreeDigits) {
  EXPECT_EQ(rounded(0), "0");
  EXPECT_EQ(rounded(1.004), "1.00");
  EXPECT_EQ(rounded(37.25), "37.2");
  EXPECT_EQ(rounded(1365), "1365");
  EXPECT_EQ(rounded(0.0312), "0.031");
}

TEST(Figures, JsonHasAFigureWithItsFirstRow) {
  const Figure figure{.name = "one", .source = "a paper"};
  const FigureRun run{
      &figure,
      {.seeds = 2},
      {.rows = {{"label", "WAF", 2.0, {1.5, 1.25, 1.5, 2}}, {"other", "WAF", {}, {3}}}}};
  const nlohmann::json json = json_of(std::array{run})["figures"];
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["name"], "one");
  EXPECT_EQ(json[0]["paper"], 2.0);
  EXPECT_EQ(json[0]["ours"], 1.5);
  EXPECT_EQ(json[0]["unit"], "WAF");
  EXPECT_EQ(json[0]["spread"], 0.25);
  EXPECT_EQ(json[0]["rows"].size(), 2u);
  EXPECT_TRUE(json[0]["rows"][1]["paper"].is_null());
}

}  // namespace
}  // namespace streamfs::lab::figures
