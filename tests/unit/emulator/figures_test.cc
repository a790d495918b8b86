// The figures as a whole: names, options, the report. What each shows is in a test of its own.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "emulator/figures/figure.h"
#include "emulator/figures/parallel.h"
#include "emulator/figures/report.h"
#include "tests/unit/emulator/figure_checks.h"

namespace streamfs::emulator::figures {
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
  EXPECT_DOUBLE_EQ(measured.spread, 2);
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

TEST(Figures, NumbersAreRoundedToThreeDigits) {
  EXPECT_EQ(rounded(0), "0");
  EXPECT_EQ(rounded(1.004), "1.00");
  EXPECT_EQ(rounded(37.25), "37.2");
  EXPECT_EQ(rounded(1365), "1365");
  EXPECT_EQ(rounded(0.0312), "0.031");
}

TEST(Figures, JsonHasAFigureWithItsFirstRow) {
  const Figure figure{.name = "one", .source = "a paper"};
  const FigureRun run{&figure,
                      {.seeds = 2},
                      {.rows = {{"label", "WAF", 2.0, {1.5, 0.25, 2}}, {"other", "WAF", {}, {3}}}}};
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

class EveryFigure : public ::testing::TestWithParam<std::string> {};

// Those that take seconds are run by a test of their own, which looks at the rows, too
// (small_run()).
bool has_its_own_test(const std::string& name) {
  return name.starts_with("yong2021-fig") || name.starts_with("vishwakarma2019") ||
         name.starts_with("choi");
}

TEST_P(EveryFigure, IsInTheCommittedReport) {
  const Figure& figure = **find_figure(GetParam());
  EXPECT_FALSE(figure.unsaid.empty());
  EXPECT_FALSE(figure.assumed.empty());
  const std::vector<std::string> section = committed_section(figure.name);
  ASSERT_FALSE(section.empty()) << "make it anew: ssd-sim reproduce --all --markdown";
  const std::set<std::string> lines(section.begin(), section.end());
  for (const auto* list : {&figure.unsaid, &figure.assumed})
    for (const std::string& line : *list) EXPECT_TRUE(lines.contains("- " + line)) << line;
  if (!has_its_own_test(figure.name)) (void)small_run(figure.name, 1);
}

TEST(Choi, FourStreamsMoreThanDoubleLifetimeAndReadsAreSteadier) {
  const FigureRun run = small_run("choi-fio", 1);
  EXPECT_GT(row(run, "WAF without ÷ with streams (lifetime)"), 2);
  EXPECT_LE(row(run, "WAF, streams on"), 1.02);
  EXPECT_LT(row(run, "read IOPS, deviation ÷ mean, streams on"),
            row(run, "read IOPS, deviation ÷ mean, streams off"));
  EXPECT_GT(row(run, "throughput, on ÷ off"), 1);
}

TEST(Choi, AStreamALevelSavesSomeOfAnLsmTreesCopies) {
  const FigureRun run = small_run("choi-rocksdb", 1);
  EXPECT_GT(row(run, "off, WAF"), 1.3);
  EXPECT_GT(row(run, "a stream a level, lifetime"), 10);
  EXPECT_GT(row(run, "a stream a level, throughput"), 0);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Figure& figure : all_figures()) all.push_back(figure.name);
  return all;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& letter : name)
    if (letter == '-') letter = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, EveryFigure, ::testing::ValuesIn(names()), test_name);

}  // namespace
}  // namespace streamfs::emulator::figures
