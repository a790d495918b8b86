#include "ssd/stats.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>

#include "ssd/background.h"
#include "ssd/counters.h"
#include "ssd/geometry.h"
#include "ssd/latency.h"
#include "ssd/layout.h"

namespace streamfs::ssd {
namespace {

nlohmann::json or_null(std::optional<double> value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

std::optional<double> SsdStats::waf() const {
  if (!nand_known || written_bytes == 0) return std::nullopt;
  return static_cast<double>(nand_bytes) / static_cast<double>(written_bytes);
}

std::optional<double> SsdStats::effective_spare() const {
  if (!nand_known || peak_live_bytes == 0) return std::nullopt;
  return static_cast<double>(physical_bytes) / static_cast<double>(peak_live_bytes) - 1;
}

SsdStats stats_of(const Geometry& geometry, const SharedState& state) {
  const Counters delta = difference(state.now, state.baseline);
  SsdStats stats;
  stats.written_bytes = delta.host_pages * kPageBytes;
  stats.read_bytes = delta.read_pages * kPageBytes;
  stats.trimmed_bytes = delta.trimmed_pages * kPageBytes;
  stats.flushes = delta.flushes;
  stats.gc_bytes = delta.gc_pages * kPageBytes;
  stats.idle_gc_bytes = delta.idle_gc_pages * kPageBytes;
  stats.wear_bytes = delta.wear_pages * kPageBytes;
  stats.pad_bytes = delta.pad_pages * kPageBytes;
  stats.rmw_read_bytes = delta.rmw_reads * kPageBytes;
  stats.rmw_bytes = delta.rmw_pages * kPageBytes;
  stats.nand_bytes = stats.written_bytes + stats.gc_bytes + stats.pad_bytes + stats.rmw_bytes;
  stats.erases = delta.erases;
  stats.live_bytes = state.live.live_pages * kPageBytes;
  stats.peak_live_bytes = state.live.peak_live_pages * kPageBytes;
  stats.physical_bytes = geometry.physical_pages() * kPageBytes;
  stats.damaged_pages = state.damaged_pages;
  stats.bad_blocks = state.live.bad_blocks;
  stats.free_blocks = geometry.blocks - state.live.occupied_blocks;
  stats.urgency = urgency_of(geometry, stats.free_blocks);
  stats.program_failures = delta.program_failures;
  stats.erase_failures = delta.erase_failures;
  stats.media_errors = delta.media_errors;
  stats.unknown_placements = delta.unknown_placements;
  stats.time = virtual_time_of(geometry, delta);
  stats.merges = difference(state.merges, state.merges_baseline);
  stats.words_at_start = state.words_at_start;
  stats.spares_at_start = state.spares_at_start;
  for (size_t i = 0; i < geometry.streams; ++i)
    stats.streams.push_back(
        {delta.streams[i].host_pages * kPageBytes, delta.streams[i].gc_pages * kPageBytes});
  return stats;
}

void add_to_json(nlohmann::json& json, const VirtualTime& time, bool known) {
  const auto put = [&](double value) {
    return known ? nlohmann::json(value) : nlohmann::json(nullptr);
  };
  const auto quantiles = [&](const VirtualTime::Quantiles& q) {
    return nlohmann::json{{"p50", put(q.p50_us)}, {"p99", put(q.p99_us)}, {"p999", put(q.p999_us)}};
  };
  json["latency_us"] = quantiles(time.write);
  json["read_latency_us"] = quantiles(time.read);
  json["simulated_mb_per_s"] = put(time.simulated_mb_per_s);
  json["bound_mb_per_s"] = put(time.bound_mb_per_s);
  json["virtual_seconds"] = put(time.seconds);
}

nlohmann::json to_json(const SsdStats& stats) {
  nlohmann::json json = {{"written_bytes", stats.written_bytes},
                         {"read_bytes", stats.read_bytes},
                         {"trimmed_bytes", stats.trimmed_bytes},
                         {"flushes", stats.flushes}};
  const auto known = [&](auto value) {
    return stats.nand_known ? nlohmann::json(value) : nlohmann::json(nullptr);
  };
  json["nand_bytes"] = known(stats.nand_bytes);
  json["gc_bytes"] = known(stats.gc_bytes);
  json["idle_gc_bytes"] = known(stats.idle_gc_bytes);
  json["wear_bytes"] = known(stats.wear_bytes);
  json["pad_bytes"] = known(stats.pad_bytes);
  json["rmw_bytes"] = known(stats.rmw_bytes);
  json["rmw_read_bytes"] = known(stats.rmw_read_bytes);
  json["waf"] = or_null(stats.waf());
  json["effective_spare"] = or_null(stats.effective_spare());
  json["live_bytes"] = known(stats.live_bytes);
  json["peak_live_bytes"] = known(stats.peak_live_bytes);
  json["physical_bytes"] = known(stats.physical_bytes);
  json["erases"] = known(stats.erases);
  json["bad_blocks"] = known(stats.bad_blocks);
  json["program_failures"] = known(stats.program_failures);
  json["erase_failures"] = known(stats.erase_failures);
  json["media_errors"] = known(stats.media_errors);
  json["unknown_placements"] = known(stats.unknown_placements);
  add_to_json(json, stats.time, stats.nand_known);
  json["streams"] = nlohmann::json::array();
  for (size_t i = 0; i < stats.streams.size(); ++i) {
    const StreamUse& use = stats.streams[i];
    const double total = static_cast<double>(use.written_bytes + use.gc_bytes);
    const auto waf = use.written_bytes == 0
                         ? std::nullopt
                         : std::optional(total / static_cast<double>(use.written_bytes));
    json["streams"].push_back({{"stream", i},
                               {"written_bytes", use.written_bytes},
                               {"gc_bytes", known(use.gc_bytes)},
                               {"waf", stats.nand_known ? or_null(waf) : nullptr}});
  }
  return json;
}

}  // namespace streamfs::ssd
