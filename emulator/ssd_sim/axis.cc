#include "emulator/ssd_sim/axis.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string>

#include "emulator/ssd_sim/canvas.h"

namespace streamfs::emulator::ssd_sim {

double step_for(double highest) {
  double step = std::pow(10, std::floor(std::log10(highest)));
  while (highest / step < 3) step /= 2;
  return step;
}

Axis::Axis(double highest_value, int top_of_plot)
    : step(step_for(highest_value)),
      highest(std::ceil(highest_value / step) * step),
      top(top_of_plot) {}

int Axis::height_of(double value) const {
  return static_cast<int>(std::lround(value / highest * kPlot));
}

void draw_axis(Canvas& canvas, const Axis& axis, int width, const std::string& name) {
  const auto lines = static_cast<int>(std::lround(axis.highest / axis.step));
  for (int i = 0; i <= lines; ++i) {
    const double value = i * axis.step;
    const int y = axis.y_of(value);
    canvas.rectangle(kLeft, y, width - kLeft - kMargin, 1, kGrid);
    const std::string label = fmt::format("{:g}", value);
    canvas.text(kLeft - 8 - Canvas::text_width(label), y - 7, label, kInk);
  }
  canvas.text(kMargin, axis.top - kLine - 4, name, kInk);
}

void draw_key(Canvas& canvas, size_t index, const std::string& name) {
  const int y = kMargin + static_cast<int>(index) * kLine;
  canvas.rectangle(kLeft, y, 14, 14, kColours[index % kColours.size()]);
  canvas.text(kLeft + kLine, y, name, kInk);
}

}  // namespace streamfs::emulator::ssd_sim
