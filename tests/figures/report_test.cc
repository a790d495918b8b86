// Every figure there is: its rows are those of the committed report.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "lab/figures/figure.h"
#include "tests/figures/figure_checks.h"

namespace streamfs::lab::figures {
namespace {

class EveryFigure : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryFigure, IsInTheCommittedReport) {
  const Figure& figure = **find_figure(GetParam());
  EXPECT_FALSE(figure.unsaid.empty());
  EXPECT_FALSE(figure.assumed.empty());
  const std::vector<std::string> section = committed_section(figure.name);
  ASSERT_FALSE(section.empty()) << "make it anew: ssd-sim reproduce --all --markdown";
  const std::set<std::string> lines(section.begin(), section.end());
  for (const auto* list : {&figure.unsaid, &figure.assumed})
    for (const std::string& line : *list) EXPECT_TRUE(lines.contains("- " + line)) << line;
  // Notes hold whatever a run comes to, findings are of one run.
  for (const std::string& note : small_run(figure.name, 1).result.notes)
    EXPECT_TRUE(lines.contains("- " + note)) << note;
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
}  // namespace streamfs::lab::figures
