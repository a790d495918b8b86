#include "emulator/ssd_sim/figure_chart.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "emulator/figures/figure.h"
#include "emulator/figures/report.h"
#include "emulator/ssd_sim/axis.h"
#include "emulator/ssd_sim/canvas.h"

namespace streamfs::emulator::ssd_sim {
namespace {

using figures::Curve;
using figures::FigureResult;
using figures::FigureRow;

constexpr int kWide = 720, kBars = 420, kThin = 14, kDot = 3;

struct Along {
  double least, most;
  int x_of(double value) const {
    const double span = most > least ? most - least : 1;
    return kLeft + static_cast<int>(std::lround((value - least) / span * (kWide - kDot)));
  }
};

// Straight lines between the points, a dot in each column.
void draw_curve(Canvas& canvas, const Axis& axis, const Along& along, const Curve& curve,
                Colour colour) {
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const auto [x, y] = curve.points[i];
    canvas.rectangle(along.x_of(x) - 2, axis.y_of(y) - 2, kDot + 4, kDot + 4, colour);
    if (i == 0) continue;
    const auto [before_x, before_y] = curve.points[i - 1];
    const int from = along.x_of(before_x), to = along.x_of(x);
    for (int column = from; column < to; ++column) {
      const double share = static_cast<double>(column - from) / (to - from);
      canvas.rectangle(column, axis.y_of(before_y + share * (y - before_y)), kDot, kDot, colour);
    }
  }
}

std::string curves_of(const FigureResult& result) {
  double highest = 0;
  constexpr double kFar = std::numeric_limits<double>::infinity();
  Along along{kFar, -kFar};
  for (const Curve& curve : result.curves) {
    for (const auto& [x, y] : curve.points) {
      highest = std::max(highest, y);
      along = {std::min(along.least, x), std::max(along.most, x)};
    }
  }
  const Axis axis(std::max(highest, 1e-9),
                  kMargin + as_int(result.curves.size()) * kLine + 2 * kLine);
  const int width = kLeft + kWide + kMargin;
  Canvas canvas(width, axis.top + kPlot + 2 * kLine + kMargin);
  draw_axis(canvas, axis, width, result.height);
  for (size_t i = 0; i < result.curves.size(); ++i) {
    draw_key(canvas, i, result.curves[i].label);
    draw_curve(canvas, axis, along, result.curves[i], kColours[i % kColours.size()]);
  }
  for (const auto& [x, y] : result.curves[0].points) {
    const std::string label = figures::rounded(x);
    canvas.text(along.x_of(x) - Canvas::text_width(label, 1) / 2, axis.top + kPlot + 10, label,
                kInk, 1);
  }
  canvas.text(kLeft, axis.top + kPlot + 10 + kLine, result.along, kInk);
  return canvas.png();
}

// Bars of one unit share a scale.
double longest_of(const FigureResult& result, const std::string& unit) {
  double longest = 0;
  for (const FigureRow& row : result.rows)
    if (row.unit == unit)
      longest = std::max({longest, std::abs(row.ours.mean), std::abs(row.paper.value_or(0))});
  return longest;
}

// The canvas has no other letters.
std::string in_ascii(std::string words) {
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{"µ", "u"},
                                 {"÷", "/"},
                                 {"−", "-"},
                                 {"≥", "at least"},
                                 {"×", "x"}})
    for (size_t at = 0; (at = words.find(from)) != std::string::npos;)
      words.replace(at, from.size(), to);
  return words;
}

std::string bars_of(const FigureResult& result) {
  size_t label = 0;
  for (const FigureRow& row : result.rows)
    label = std::max(label, row.label.size() + row.unit.size() + 2);
  const int left = kMargin + as_int(label) * 6 * 2 + kMargin;
  Canvas canvas(left + kBars + 160, kMargin + 3 * kLine + as_int(result.rows.size()) * 3 * kThin);
  draw_key(canvas, 0, "paper");
  draw_key(canvas, 1, "here");
  int y = kMargin + 3 * kLine;
  for (const FigureRow& row : result.rows) {
    canvas.text(kMargin, y + kThin / 2, in_ascii(row.label + ", " + row.unit), kInk);
    const double longest = std::max(longest_of(result, row.unit), 1e-9);
    const auto bar = [&](double value, int at, Colour colour) {
      const auto length = static_cast<int>(std::lround(std::abs(value) / longest * kBars));
      canvas.rectangle(left, at, length, kThin - 2, colour);
      canvas.text(left + length + 6, at, figures::rounded(value), kInk, 1);
    };
    if (row.paper) bar(*row.paper, y, kColours[0]);
    bar(row.ours.mean, y + kThin, kColours[1]);
    y += 3 * kThin;
  }
  return canvas.png();
}

}  // namespace

std::string chart_of(const figures::FigureRun& run) {
  return run.result.curves.empty() ? bars_of(run.result) : curves_of(run.result);
}

}  // namespace streamfs::emulator::ssd_sim
