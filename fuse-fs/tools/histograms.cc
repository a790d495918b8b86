#include "fuse-fs/tools/histograms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log_histogram.h"
#include "base/table.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {
namespace {

using nlohmann::json;

struct Percentile {
  const char *title, *key;
  double share;
};
constexpr std::array<Percentile, 4> kPercentiles = {{{"p50", "p50_us", 0.5},
                                                     {"p99", "p99_us", 0.99},
                                                     {"p99.9", "p999_us", 0.999},
                                                     {"max", "max_us", 1}}};

constexpr size_t kBounds = 28;  // of rows; one more row has all above them
using Rows = std::array<uint64_t, kBounds + 1>;

uint64_t bound(size_t row, Measure measure) {
  return (measure == Measure::kTimes ? uint64_t{1000} : uint64_t{1}) << row;
}

const char* sum_key(Measure measure) {
  return measure == Measure::kTimes ? "sum_ns" : "sum_bytes";
}

std::optional<std::vector<NamedHistogram>> histograms_of(const json& metrics, Measure measure) {
  const char* list = measure == Measure::kTimes ? "ops" : "sizes";
  if (!metrics.is_object() || !metrics.contains(list)) return std::nullopt;
  std::vector<NamedHistogram> out;
  for (const json& each : metrics.at(list)) {
    if (!each.contains("buckets")) return std::nullopt;
    NamedHistogram& made = out.emplace_back();
    for (const char* key : {"side", "op"}) {
      if (!each.contains(key)) continue;
      made.keys[key] = each.at(key);
      made.name += (made.name.empty() ? "" : " ") + each.at(key).get<std::string>();
    }
    for (const json& bucket : each.at("buckets"))
      made.values.counts[LogBuckets::of(bucket.at(1).get<uint64_t>())] +=
          bucket.at(2).get<uint64_t>();
    made.values.sum = count_of(each, sum_key(measure));
  }
  return out;
}

Rows rows_of(const LogHistogram& histogram, Measure measure) {
  Rows out{};
  size_t row = 0;
  for (size_t bucket = 0; bucket < LogBuckets::kCount; ++bucket) {
    while (row < kBounds && LogBuckets::up_to(bucket) > bound(row, measure)) ++row;
    out[row] += histogram.counts[bucket];
  }
  return out;
}

std::string row_title(size_t row, Measure measure, const Style& style) {
  if (row == kBounds) return "more";
  if (measure == Measure::kSizes) return bytes_text(bound(row, measure), style);
  return duration_text(static_cast<double>(bound(row, measure)), style);
}

Table table_of(const std::vector<NamedHistogram>& histograms) {
  std::vector<Table::Column> columns = {{"at most", Table::Align::kRight, 10}};
  for (const NamedHistogram& each : histograms)
    columns.push_back({each.name, Table::Align::kRight, 6});
  return Table(std::move(columns));
}

void add_counts(Table& table, const std::vector<NamedHistogram>& histograms, Measure measure,
                const Style& style) {
  std::vector<Rows> columns;
  size_t first = kBounds, last = 0;
  for (const NamedHistogram& each : histograms) {
    const Rows& rows = columns.emplace_back(rows_of(each.values, measure));
    for (size_t row = 0; row < rows.size(); ++row) {
      if (rows[row] == 0) continue;
      first = std::min(first, row);
      last = std::max(last, row);
    }
  }
  for (size_t row = first; row <= last; ++row) {
    std::vector<std::string> cells = {row_title(row, measure, style)};
    for (const Rows& rows : columns) cells.push_back(count_text(rows[row], style));
    table.row(std::move(cells));
  }
}

void add_percentiles(Table& table, const std::vector<NamedHistogram>& histograms,
                     const Style& style) {
  for (const Percentile& percentile : kPercentiles) {
    std::vector<std::string> cells = {percentile.title};
    for (const NamedHistogram& each : histograms)
      cells.push_back(duration_text(each.values.quantile(percentile.share), style));
    table.row(std::move(cells));
  }
}

}  // namespace

std::optional<std::vector<NamedHistogram>> histograms_between(const json& before, const json& after,
                                                              Measure measure) {
  auto out = histograms_of(after, measure);
  const auto was = histograms_of(before, measure);
  if (!out || !was) return out;
  for (NamedHistogram& now : *out) {
    const auto found = std::ranges::find(*was, now.name, &NamedHistogram::name);
    if (found != was->end()) now.values = now.values.since(found->values);
  }
  return out;
}

json percentiles_json(const LogHistogram& times_ns) {
  json out = {{"count", times_ns.count()}};
  for (const Percentile& each : kPercentiles) {
    const double ns = times_ns.quantile(each.share);
    out[each.key] = times_ns.count() == 0 ? json() : json(ns / 1000);
  }
  return out;
}

json histograms_json(const std::vector<NamedHistogram>& histograms, Measure measure) {
  json out = json::array();
  for (const NamedHistogram& each : histograms) {
    const LogHistogram& values = each.values;
    json& made = out.emplace_back(each.keys);
    made.update(measure == Measure::kTimes ? percentiles_json(values)
                                           : json{{"count", values.count()}});
    made[sum_key(measure)] = values.sum;
    json& buckets = made["buckets"] = json::array();
    for (size_t i = 0; i < LogBuckets::kCount; ++i)
      if (values.counts[i] != 0)
        buckets.push_back({LogBuckets::above(i), LogBuckets::up_to(i), values.counts[i]});
  }
  return out;
}

std::string histograms_text(const std::vector<NamedHistogram>& histograms, Measure measure,
                            const Style& style) {
  std::vector<NamedHistogram> shown = histograms;
  std::erase_if(shown, [](const NamedHistogram& each) { return each.values.count() == 0; });
  if (shown.empty()) return "no requests\n";
  Table table = table_of(shown);
  add_counts(table, shown, measure, style);
  if (measure == Measure::kTimes) add_percentiles(table, shown, style);
  return table_text(table, style);
}

std::string duration_text(double ns, const Style& style) {
  if (style.raw) return fmt::format("{:.0f}", ns);
  if (ns < 999.5) return fmt::format("{:.0f}ns", ns);
  if (ns < 999.5e3) return fmt::format("{:.3g}us", ns / 1e3);
  if (ns < 999.5e6) return fmt::format("{:.3g}ms", ns / 1e6);
  return fmt::format("{:.3g}s", ns / 1e9);
}

}  // namespace streamfs::tools
