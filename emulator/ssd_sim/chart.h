// A comparison as a bar chart: one group for each workload and victim, one bar for each placement,
// its WAF above it.
// Thread safety: pure functions.
#pragma once

#include <string>

#include "emulator/ssd_sim/comparison.h"

namespace streamfs::emulator::ssd_sim {

std::string chart_of(const Comparison& comparison);  // a PNG file's bytes

}  // namespace streamfs::emulator::ssd_sim
