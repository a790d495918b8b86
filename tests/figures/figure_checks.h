// The tests of figures share this: a figure run small, its rows by label, the committed report.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/figures/figure.h"
#include "lab/figures/report.h"

namespace streamfs::lab::figures {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Returns the lines of a section of docs/REPRODUCTION.md.
inline std::vector<std::string> committed_section(const std::string& name) {
  std::ifstream file(std::string(STREAMFS_DOCS) + "/REPRODUCTION.md");
  std::vector<std::string> section;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## " + name;
    if (inside) section.push_back(line);
  }
  return section;
}

// Returns the unmeasured cells of each row of a section's table: label, paper's number, unit.
inline std::vector<std::string> structure_of(const std::vector<std::string>& section) {
  std::vector<std::string> structure;
  for (const std::string& line : section) {
    if (!line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
    if (cells.size() == 5) structure.push_back(cells[0] + '|' + cells[1] + '|' + cells[4]);
  }
  return structure;
}

// The committed report has this figure's rows. Numbers may differ: it was made at another scale.
inline void expect_committed(const FigureRun& run) {
  ASSERT_FALSE(run.result.rows.empty());
  EXPECT_EQ(structure_of(lines_of(markdown_of(std::array{run}))),
            structure_of(committed_section(run.figure->name)))
      << "make docs/REPRODUCTION.md anew: ssd-sim reproduce --all --markdown";
}

// A figure at the smallest scale at which it shows what it shows: run once, however many tests look
// at it. Its rows are the committed report's. Thread safety: none.
inline const FigureRun& small_run(const std::string& name, uint32_t seeds) {
  static std::map<std::pair<std::string, uint32_t>, FigureRun> runs;
  const auto [place, is_new] = runs.try_emplace({name, seeds});
  if (!is_new) return place->second;
  const Figure& figure = **find_figure(name);
  Result<FigureRun> run = run_figure(figure, {.seeds = seeds, .scale = figure.smallest, .jobs = 2});
  EXPECT_TRUE(run.ok()) << run.error().message();
  if (run.ok()) {
    expect_committed(*run);
    place->second = *std::move(run);
  }
  return place->second;
}

class FigureRows {
 public:
  explicit FigureRows(const std::string& name, uint32_t seeds = 1) : run_(small_run(name, seeds)) {}

  // −1, and a failure, where there is no such row.
  double operator[](const std::string& label) const {
    for (const FigureRow& row : run_.result.rows)
      if (row.label == label) return row.ours.mean;
    ADD_FAILURE() << "no row '" << label << "'";
    return -1;
  }

 private:
  const FigureRun& run_;
};

}  // namespace streamfs::lab::figures
