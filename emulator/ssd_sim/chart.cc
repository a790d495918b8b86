#include "emulator/ssd_sim/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include "emulator/replay/replay.h"
#include "emulator/ssd_sim/canvas.h"
#include "emulator/ssd_sim/comparison.h"

namespace streamfs::emulator::ssd_sim {
namespace {

constexpr Colour kInk = {40, 40, 40};
constexpr Colour kGrid = {222, 222, 222};
// Told apart also by those who do not see all colours (Okabe and Ito).
constexpr std::array<Colour, 8> kColours = {{{90, 90, 90},
                                             {230, 159, 0},
                                             {86, 180, 233},
                                             {0, 158, 115},
                                             {204, 121, 167},
                                             {0, 114, 178},
                                             {213, 94, 0},
                                             {240, 228, 66}}};

constexpr int kBar = 56, kGap = 32, kLeft = 70, kPlot = 360, kLine = 22, kMargin = 16;

int as_int(size_t value) {
  return static_cast<int>(value);
}

// A round step that divides the axis into three to eight parts.
double step_for(double highest) {
  double step = std::pow(10, std::floor(std::log10(highest)));
  while (highest / step < 3) step /= 2;
  return step;
}

struct Frame {
  double highest;  // of the axis
  int top;
  int height_of(double waf) const { return static_cast<int>(std::lround(waf / highest * kPlot)); }
};

void draw_axis(Canvas& canvas, const Frame& frame, double step, int width) {
  const auto lines = static_cast<int>(std::lround(frame.highest / step));
  for (int i = 0; i <= lines; ++i) {
    const double value = i * step;
    const int y = frame.top + kPlot - frame.height_of(value);
    canvas.rectangle(kLeft, y, width - kLeft - kMargin, 1, kGrid);
    const std::string label = fmt::format("{:g}", value);
    canvas.text(kLeft - 8 - Canvas::text_width(label), y - 7, label, kInk);
  }
  canvas.text(kMargin, frame.top - kLine - 4, "waf", kInk);
}

void draw_group(Canvas& canvas, const Frame& frame, const Comparison& c, size_t workload,
                size_t victim, int x) {
  for (size_t placement = 0; placement < c.placements.size(); ++placement) {
    const double waf = c.at(workload, victim, placement).waf();
    const int height = frame.height_of(waf), y = frame.top + kPlot - height;
    const int left = x + as_int(placement) * kBar;
    canvas.rectangle(left + 2, y, kBar - 4, height, kColours[placement % kColours.size()]);
    const std::string label = fmt::format("{:.2f}", waf);
    canvas.text(left + (kBar - Canvas::text_width(label)) / 2, y - 18, label, kInk);
  }
  canvas.text(x, frame.top + kPlot + 10, c.workloads[workload], kInk);
  canvas.text(x, frame.top + kPlot + 10 + kLine, c.victims[victim], kInk);
}

}  // namespace

std::string chart_of(const Comparison& c) {
  double highest = 1;
  for (const ReplayResult& result : c.results) highest = std::max(highest, result.waf());
  const double step = step_for(highest);
  const Frame frame{std::ceil(highest / step) * step,
                    kMargin + as_int(c.placements.size()) * kLine + 2 * kLine};
  int group = as_int(c.placements.size()) * kBar;
  for (const std::string& name : c.workloads) group = std::max(group, Canvas::text_width(name));
  for (const std::string& name : c.victims) group = std::max(group, Canvas::text_width(name));
  const int groups = as_int(c.workloads.size() * c.victims.size());
  int width = kLeft + groups * (group + kGap) + kMargin;
  for (const std::string& name : c.placements)
    width = std::max(width, kLeft + kLine + Canvas::text_width(name) + kMargin);
  Canvas canvas(width, frame.top + kPlot + 3 * kLine + kMargin);
  draw_axis(canvas, frame, step, width);
  for (size_t i = 0; i < c.placements.size(); ++i) {
    const int y = kMargin + as_int(i) * kLine;
    canvas.rectangle(kLeft, y, 14, 14, kColours[i % kColours.size()]);
    canvas.text(kLeft + kLine, y, c.placements[i], kInk);
  }
  for (int i = 0; i < groups; ++i)
    draw_group(canvas, frame, c, static_cast<size_t>(i) / c.victims.size(),
               static_cast<size_t>(i) % c.victims.size(), kLeft + kGap / 2 + i * (group + kGap));
  return canvas.png();
}

}  // namespace streamfs::emulator::ssd_sim
