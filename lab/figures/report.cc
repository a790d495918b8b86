#include "lab/figures/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/table.h"
#include "base/wire/control.h"
#include "lab/figures/figure.h"

namespace streamfs::lab::figures {
namespace {

std::string paper_of(const FigureRow& row) {
  return row.paper ? rounded(*row.paper) : "";
}

std::string spread_of(const Measured& ours) {
  if (ours.seeds <= 1) return "";
  return fmt::format("{} over {}", rounded(ours.spread()), ours.seeds);
}

// Returns the scale in brackets, to follow the source, or nothing.
std::string scale_of(const FigureRun& run) {
  if (run.options.scale == 0) return "";
  if (run.options.scale == 1) return " (devices of the source's size)";
  return fmt::format(" (devices of 1/{} of the source's size)", run.options.scale);
}

nlohmann::json json_of_row(const FigureRow& row) {
  nlohmann::json json = {{"paper", nullptr},        {"ours", row.ours.mean},
                         {"unit", row.unit},        {"spread", row.ours.spread()},
                         {"seeds", row.ours.seeds}, {"label", row.label},
                         {"least", row.ours.least}, {"most", row.ours.most}};
  if (row.paper) json["paper"] = *row.paper;
  return json;
}

// Returns a sentence for each value of the paper beside ours, and the figure's other findings.
std::vector<std::string> findings_of(const FigureRun& run) {
  std::vector<std::string> all;
  for (const FigureRow& row : run.result.rows) {
    if (!row.paper) continue;
    std::string text = fmt::format("{}: {} here and {} in the source", row.label,
                                   rounded(row.ours.mean), rounded(*row.paper));
    if (*row.paper != 0 && row.ours.mean / *row.paper > 0)
      text += fmt::format(", {} times as much", rounded(row.ours.mean / *row.paper));
    all.push_back(text + ".");
  }
  std::ranges::copy(run.result.findings, std::back_inserter(all));
  return all;
}

void list_text(std::string& text, const char* head, const std::vector<std::string>& items) {
  for (const std::string& item : items) text += fmt::format("{}: {}\n", head, item);
}

void list_markdown(std::string& text, const char* head, const std::vector<std::string>& items) {
  if (items.empty()) return;
  text += fmt::format("\n{}:\n", head);
  for (const std::string& item : items) text += fmt::format("- {}\n", item);
}

}  // namespace

std::string rounded(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size < 0.0995) return fmt::format("{:.2g}", value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string text_of(const FigureRun& run) {
  const Figure& figure = *run.figure;
  std::string text =
      fmt::format("{}: {}\n{}{}\n\n", figure.name, figure.shows, figure.source, scale_of(run));
  using enum Table::Align;
  Table table({{"", kLeft}, {"paper"}, {"ours"}, {"spread"}, {"unit", kLeft}});
  for (const FigureRow& row : run.result.rows)
    table.row({row.label, paper_of(row), rounded(row.ours.mean), spread_of(row.ours), row.unit});
  text += table.text();
  text += '\n';
  list_text(text, "found", findings_of(run));
  list_text(text, "note", run.result.notes);
  list_text(text, "unsaid", figure.unsaid);
  list_text(text, "assumed", figure.assumed);
  return text;
}

nlohmann::json json_of(std::span<const FigureRun> runs) {
  nlohmann::json all = nlohmann::json::array();
  for (const FigureRun& run : runs) {
    nlohmann::json one =
        run.result.rows.empty() ? nlohmann::json::object() : json_of_row(run.result.rows[0]);
    one["name"] = run.figure->name;
    one["source"] = run.figure->source;
    one["shows"] = run.figure->shows;
    one["along"] = run.result.along;
    one["height"] = run.result.height;
    one["scale"] = run.options.scale;
    one["rows"] = nlohmann::json::array();
    for (const FigureRow& row : run.result.rows) one["rows"].push_back(json_of_row(row));
    one["findings"] = findings_of(run);
    one["notes"] = run.result.notes;
    one["unsaid"] = run.figure->unsaid;
    one["assumed"] = run.figure->assumed;
    for (const Curve& curve : run.result.curves) one["curves"][curve.label] = curve.points;
    all.push_back(std::move(one));
  }
  return {{"schema", wire::kJsonSchema}, {"figures", std::move(all)}};
}

std::string markdown_of(std::span<const FigureRun> runs) {
  std::string text =
      "# Published figures, run again\n\n"
      "Figures that papers published about devices that are not for sale, simulated on models of "
      "these\n"
      "devices; nothing here was measured on a device. `ssd-sim reproduce --all --markdown` writes "
      "this page,\n"
      "`ssd-sim reproduce FIGURE` runs one figure, and `--svg FILE` draws it. *Spread* is the "
      "largest value\n"
      "minus the smallest over the number of seeds; a figure without randomness has none.\n";
  for (const FigureRun& run : runs) {
    const Figure& figure = *run.figure;
    text += fmt::format("\n## {}\n\n{}{}: {}.\n\n", figure.name, figure.source, scale_of(run),
                        figure.shows);
    text += "| | paper | here | spread | unit |\n|---|---|---|---|---|\n";
    for (const FigureRow& row : run.result.rows)
      text += fmt::format("| {} | {} | {} | {} | {} |\n", row.label, paper_of(row),
                          rounded(row.ours.mean), spread_of(row.ours), row.unit);
    list_markdown(text, "Found", findings_of(run));
    list_markdown(text, "Notes", run.result.notes);
    list_markdown(text, "The source does not say", figure.unsaid);
    list_markdown(text, "Assumed", figure.assumed);
  }
  return text;
}

}  // namespace streamfs::lab::figures
