#include "emulator/ssd_sim/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "emulator/replay/replay.h"
#include "emulator/ssd_sim/axis.h"
#include "emulator/ssd_sim/canvas.h"
#include "emulator/ssd_sim/comparison.h"

namespace streamfs::emulator::ssd_sim {
namespace {

constexpr int kBar = 56, kGap = 32;

void draw_group(Canvas& canvas, const Axis& axis, const Comparison& c, size_t workload,
                size_t victim, int x) {
  for (size_t placement = 0; placement < c.placements.size(); ++placement) {
    const double waf = c.at(workload, victim, placement).waf();
    const int height = axis.height_of(waf), y = axis.y_of(waf);
    const int left = x + as_int(placement) * kBar;
    canvas.rectangle(left + 2, y, kBar - 4, height, kColours[placement % kColours.size()]);
    const std::string label = fmt::format("{:.2f}", waf);
    canvas.text(left + (kBar - Canvas::text_width(label)) / 2, y - 18, label, kInk);
  }
  canvas.text(x, axis.top + kPlot + 10, c.workloads[workload], kInk);
  canvas.text(x, axis.top + kPlot + 10 + kLine, c.victims[victim], kInk);
}

}  // namespace

std::string chart_of(const Comparison& c) {
  double highest = 1;
  for (const ReplayResult& result : c.results) highest = std::max(highest, result.waf());
  const Axis axis(highest, kMargin + as_int(c.placements.size()) * kLine + 2 * kLine);
  int group = as_int(c.placements.size()) * kBar;
  for (const std::string& name : c.workloads) group = std::max(group, Canvas::text_width(name));
  for (const std::string& name : c.victims) group = std::max(group, Canvas::text_width(name));
  const int groups = as_int(c.workloads.size() * c.victims.size());
  int width = kLeft + groups * (group + kGap) + kMargin;
  for (const std::string& name : c.placements)
    width = std::max(width, kLeft + kLine + Canvas::text_width(name) + kMargin);
  Canvas canvas(width, axis.top + kPlot + 3 * kLine + kMargin);
  draw_axis(canvas, axis, width, "waf");
  for (size_t i = 0; i < c.placements.size(); ++i) draw_key(canvas, i, c.placements[i]);
  for (int i = 0; i < groups; ++i)
    draw_group(canvas, axis, c, static_cast<size_t>(i) / c.victims.size(),
               static_cast<size_t>(i) % c.victims.size(), kLeft + kGap / 2 + i * (group + kGap));
  return canvas.png();
}

}  // namespace streamfs::emulator::ssd_sim
