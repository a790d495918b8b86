// A figure as a picture: its curves where it has some, else a bar for each row, the source's beside
// ours where there is one.
// Thread safety: pure functions.
#pragma once

#include <string>

#include "emulator/figures/report.h"

namespace streamfs::emulator::ssd_sim {

std::string chart_of(const figures::FigureRun& run);  // a PNG file's bytes

}  // namespace streamfs::emulator::ssd_sim
