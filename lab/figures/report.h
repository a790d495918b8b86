// Figures that were run, as people and programs want them.
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "lab/figures/figure.h"

namespace streamfs::lab::figures {

std::string text_of(const FigureRun& run);

// {"figures": [{"name", "paper", "ours", "unit", "spread", …}]}: a figure's first row stands for it
// there, "rows" has all of them. paper is null where the source prints no number.
nlohmann::json json_of(std::span<const FigureRun> runs);

// docs/REPRODUCTION.md.
std::string markdown_of(std::span<const FigureRun> runs);

// "4.24", "1,120", "0.0031": three digits, or all before the point.
std::string rounded(double value);

}  // namespace streamfs::lab::figures
