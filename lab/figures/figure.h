// Reproduces published figures: the source's values and ours, the facts that the source omits and
// the assumptions in their place. Each figure is a small file; registry.cc lists their names.
// Thread safety: values. Several threads may run a figure, which has no state.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace streamfs::lab::figures {

struct FigureOptions {
  uint32_t seeds = 0;  // 0: as many as the figure wants
  uint32_t scale = 0;  // devices are 1/scale of the source's; 0: the figure's default
  unsigned jobs = 1;   // threads: runs are independent
};

// A value over seeds. A figure without randomness has a single run.
struct Measured {
  double mean = 0;
  double least = 0, most = 0;
  uint32_t seeds = 1;

  double spread() const { return most - least; }
};

// Returns the mean, the least and the most of the values, one for each seed; 0 for none.
Measured over_seeds(std::span<const double> values);

// Does the same for a member or function `value` of runs.
template <typename Run, typename Value>
Measured over_seeds(const std::vector<Run>& runs, const Value& value) {
  std::vector<double> values;
  for (const Run& run : runs) values.push_back(std::invoke(value, run));
  return over_seeds(values);
}

struct FigureRow {
  std::string label;
  std::string unit;
  std::optional<double> paper;  // the source's value; nullopt: it does not print one
  Measured ours;
};

// A curve of a plot. The values measured from it are in the rows, too.
struct Curve {
  std::string label;
  std::vector<std::pair<double, double>> points;
};

struct FigureResult {
  std::vector<FigureRow> rows;          // the first one stands for the figure in short tables
  std::vector<std::string> notes = {};  // why it differs from the source; hold for every result
  std::vector<Curve> curves = {};
  std::string along = {}, height = {};     // the names of a curve's x and y
  std::vector<std::string> findings = {};  // computed results beside the paper's values
};

struct Figure {
  std::string name;
  std::string source;  // the paper, and the place in it
  std::string shows = {};
  std::vector<std::string> unsaid = {};   // facts that the source omits
  std::vector<std::string> assumed = {};  // in their place
  uint32_t seeds = 1;                     // by default
  uint32_t scale = 0;                     // by default; 0: there is no device
  uint32_t smallest = 0;                  // scale of the smallest useful device, for tests
  // Errors: EINVAL for a scale at which the device cannot exist; ENOSPC.
  Result<FigureResult> (*run)(const FigureOptions& options) = nullptr;
};

// Returns all figures, in the order of their sources.
const std::vector<Figure>& all_figures();

// Errors: EINVAL; an unknown name lists the known ones.
Result<const Figure*> find_figure(const std::string& name);

struct FigureRun {
  const Figure* figure;
  FigureOptions options;  // with the figure's own seeds and scale where none were named
  FigureResult result;
};

// Errors: EINVAL for a scale of a figure without a device; the figure's own.
Result<FigureRun> run_figure(const Figure& figure, FigureOptions options);

}  // namespace streamfs::lab::figures
