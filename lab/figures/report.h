// Formats the results of figures, as JSON and as Markdown.
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "lab/figures/figure.h"

namespace streamfs::lab::figures {

std::string text_of(const FigureRun& run);

// Returns {"figures": [{"name", "paper", "ours", "unit", "spread", …}]}, with the values of a
// figure's first row; "rows" has all rows. "paper" is null if the source prints no number.
nlohmann::json json_of(std::span<const FigureRun> runs);

// Returns the text of docs/REPRODUCTION.md.
std::string markdown_of(std::span<const FigureRun> runs);

// Returns three digits, or all before the point: "4.24", "1,120", "0.0031".
std::string rounded(double value);

}  // namespace streamfs::lab::figures
