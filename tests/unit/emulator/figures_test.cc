// The figures as a whole: names, options, the report. What each shows is in a test of its own.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/result.h"
#include "emulator/figures/figure.h"
#include "emulator/figures/parallel.h"
#include "emulator/figures/report.h"

namespace streamfs::emulator::figures {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Of a section: its heading, and of a table's row what is not measured: label, paper's, unit.
std::vector<std::string> structure_of(const std::vector<std::string>& section) {
  std::vector<std::string> structure;
  for (const std::string& line : section) {
    if (line.starts_with("## ")) structure.push_back(line);
    if (!line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
    if (cells.size() == 5) structure.push_back(cells[0] + '|' + cells[1] + '|' + cells[4]);
  }
  return structure;
}

std::vector<std::string> committed_section(const std::string& name) {
  std::ifstream file(std::string(STREAMFS_DOCS) + "/REPRODUCTION.md");
  std::vector<std::string> section;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## " + name;
    if (inside) section.push_back(line);
  }
  return section;
}

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

TEST_P(EveryFigure, IsInTheCommittedReport) {
  const Figure& figure = **find_figure(GetParam());
  const Result<FigureRun> run = run_figure(figure, {.seeds = 1, .scale = figure.smallest});
  ASSERT_TRUE(run.ok()) << run.error().message();
  ASSERT_FALSE(run->result.rows.empty());
  EXPECT_FALSE(figure.unsaid.empty());
  EXPECT_FALSE(figure.assumed.empty());
  const std::vector<std::string> made = lines_of(markdown_of(std::array{*run}));
  const std::vector<std::string> committed = committed_section(figure.name);
  EXPECT_EQ(structure_of(made), structure_of(committed))
      << "make docs/REPRODUCTION.md anew: ssd-sim reproduce --all --markdown";
  const std::set<std::string> lines(committed.begin(), committed.end());
  for (const auto* list : {&figure.unsaid, &figure.assumed})
    for (const std::string& line : *list) EXPECT_TRUE(lines.contains("- " + line)) << line;
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
