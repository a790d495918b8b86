#include "lab/ssd_sim/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/table.h"
#include "lab/replay/replay.h"
#include "ssd/counters.h"

namespace streamfs::lab::ssd_sim {
namespace {

template <typename Visit>
void for_each(const Comparison& c, Visit visit) {
  for (size_t workload = 0; workload < c.workloads.size(); ++workload)
    for (size_t victim = 0; victim < c.victims.size(); ++victim)
      for (size_t placement = 0; placement < c.placements.size(); ++placement)
        visit(workload, victim, placement);
}

// Quotes a name for CSV if it has a comma, a quote or a newline.
std::string quoted(const std::string& name) {
  if (name.find_first_of(",\"\n") == std::string::npos) return name;
  std::string result = "\"";
  for (const char letter : name) result += letter == '"' ? "\"\"" : std::string(1, letter);
  return result + '"';
}

}  // namespace

std::optional<double> Comparison::gap_closed(size_t workload, size_t victim,
                                             size_t placement) const {
  const auto waf_of = [&](const char* name) -> std::optional<double> {
    const auto found = std::ranges::find(placements, name);
    if (found == placements.end()) return std::nullopt;
    return at(workload, victim, static_cast<size_t>(found - placements.begin())).waf();
  };
  const auto none = waf_of("nosep"), bound = waf_of("oracle");
  if (!none || !bound || std::abs(*none - *bound) < 1e-6) return std::nullopt;
  return (*none - at(workload, victim, placement).waf()) / (*none - *bound);
}

std::string table_of(const Comparison& c) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{"workload", kLeft}, {"victim", kLeft}};
  for (const std::string& placement : c.placements) columns.push_back({placement});
  Table table(std::move(columns));
  std::vector<std::string> cells;
  for_each(c, [&](size_t workload, size_t victim, size_t placement) {
    if (placement == 0) cells = {c.workloads[workload], c.victims[victim]};
    cells.push_back(fmt::format("{:.3f}", c.at(workload, victim, placement).waf()));
    if (const auto gap = c.gap_closed(workload, victim, placement))
      cells.back() += fmt::format(" ({:.2f})", *gap);
    if (placement + 1 == c.placements.size()) table.row(std::move(cells));
  });
  return table.text() +
         "WAF; in brackets the share of the gap between nosep and oracle that is closed.\n";
}

std::string csv_of(const Comparison& c) {
  std::string csv =
      "workload,victim,placement,edges,waf,gap_closed,host_pages,gc_pages,pad_pages,erases,"
      "effective_spare,physical_pages,peak_live_pages,footprint_pages\n";
  for_each(c, [&](size_t workload, size_t victim, size_t placement) {
    const ReplayResult& r = c.at(workload, victim, placement);
    const auto gap = c.gap_closed(workload, victim, placement);
    csv += fmt::format("{},{},{},{},{:.6f},{},{},{},{},{},{:.6f},{},{},{}\n",
                       quoted(c.workloads[workload]), r.victim, r.placement, r.edges, r.waf(),
                       gap ? fmt::format("{:.4f}", *gap) : "", r.counters.host_pages,
                       r.counters.gc_pages, r.counters.pad_pages, r.counters.erases,
                       r.effective_spare(), r.physical_pages, r.peak_live_pages, r.footprint_pages);
  });
  return csv;
}

nlohmann::json json_of(const Comparison& c) {
  nlohmann::json all = nlohmann::json::array();
  for_each(c, [&](size_t workload, size_t victim, size_t placement) {
    nlohmann::json one = to_json(c.at(workload, victim, placement));
    one["workload"] = c.workloads[workload];
    if (const auto gap = c.gap_closed(workload, victim, placement)) one["gap_closed"] = *gap;
    all.push_back(std::move(one));
  });
  return all;
}

}  // namespace streamfs::lab::ssd_sim
