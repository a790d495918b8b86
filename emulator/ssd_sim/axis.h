// What charts share: colours, a round axis, its lines and numbers.
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "emulator/ssd_sim/canvas.h"

namespace streamfs::emulator::ssd_sim {

inline constexpr Colour kInk = {40, 40, 40};
inline constexpr Colour kGrid = {222, 222, 222};
// Told apart also by those who do not see all colours (Okabe and Ito).
inline constexpr std::array<Colour, 8> kColours = {{{90, 90, 90},
                                                    {230, 159, 0},
                                                    {86, 180, 233},
                                                    {0, 158, 115},
                                                    {204, 121, 167},
                                                    {0, 114, 178},
                                                    {213, 94, 0},
                                                    {240, 228, 66}}};
inline constexpr int kLeft = 70, kPlot = 360, kLine = 22, kMargin = 16;

constexpr int as_int(size_t value) {
  return static_cast<int>(value);
}

// A round step that divides the axis into three to eight parts.
double step_for(double highest);

// From 0 up, in round steps.
struct Axis {
  Axis(double highest_value, int top_of_plot);

  int height_of(double value) const;
  int y_of(double value) const { return top + kPlot - height_of(value); }

  double step, highest;
  int top;
};

void draw_axis(Canvas& canvas, const Axis& axis, int width, const std::string& name);
// Entry `index` of the list of colours above the plot.
void draw_key(Canvas& canvas, size_t index, const std::string& name);

}  // namespace streamfs::emulator::ssd_sim
