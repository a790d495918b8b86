// What tests of figures share.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "emulator/figures/figure.h"
#include "emulator/figures/report.h"

namespace streamfs::emulator::figures {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Of docs/REPRODUCTION.md.
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

// Of each row of a section's table what is not measured: label, paper's number, unit.
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

inline double row(const FigureRun& run, const std::string& label) {
  for (const FigureRow& row : run.result.rows)
    if (row.label == label) return row.ours.mean;
  ADD_FAILURE() << "no row " << label;
  return 0;
}

// At the smallest scale at which it shows what it shows; its rows are the committed report's.
inline FigureRun small_run(const std::string& name, uint32_t seeds) {
  const Figure& figure = **find_figure(name);
  Result<FigureRun> run = run_figure(figure, {.seeds = seeds, .scale = figure.smallest, .jobs = 2});
  EXPECT_TRUE(run.ok()) << run.error().message();
  if (!run.ok()) return {&figure, {}, {}};
  expect_committed(*run);
  return *std::move(run);
}

}  // namespace streamfs::emulator::figures
