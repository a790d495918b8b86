// Replays a workload on the page-mapped FTL without data.
// Thread safety: one replay of a workload at a time; deterministic.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/placement/policy.h"
#include "lab/replay/workload.h"
#include "lab/workload/prefilled.h"
#include "ssd/counters.h"
#include "ssd/geometry.h"
#include "ssd/latency.h"
#include "ssd/victim/view.h"

namespace streamfs::lab {

struct ReplayOptions {
  std::string placement = "nosep";
  std::string victim = "greedy";
  std::string edges = "best";  // of the oracle; best: the lowest WAF of the three
  PolicyOptions policy;
  ssd::VictimOptions victim_options;
  double spare = 0.07;
  // Pages that the spare is a share of: 0 is the peak of live pages.
  uint64_t base_pages = 0;
  uint32_t physical_blocks = 0;  // overrides base_pages and spare; no reserve is added
  // A device to the letter, but for its streams: as many frontiers as the placement has classes.
  // Overrides all of the above; with it, virtual time is of its shape.
  std::optional<ssd::Geometry> device;
  Prefill prefill;                // pages written once, in order, before the trace
  std::optional<ssd::Cell> cell;  // reckon virtual time too, for a plain shape of these cells
  double load = 0.5;              // of the paced host (latency.h)
  double warmup = 0;              // share of the writes before counting starts
  Progress progress;
  // Called after each batch, with what was counted since the very start, and before counting starts
  // by `warmup`, too.
  std::function<void(const ssd::Counters&)> sample;
};

struct ReplayResult {
  std::string placement, victim, edges;
  ssd::Counters counters;
  std::optional<ssd::VirtualTime> time;
  uint16_t classes = 0;
  uint64_t physical_pages = 0, peak_live_pages = 0, footprint_pages = 0;
  double waf() const;
  double effective_spare() const;  // physical ÷ peak live − 1
};

// Prefills and annotates the workload as the options want it, and goes over it.
// Errors: EINVAL for unknown names and impossible sizes, ENOSPC when the device runs full; of the
// workload.
Result<ReplayResult> replay(Workload& workload, const ReplayOptions& options);

nlohmann::json to_json(const ReplayResult& result);

}  // namespace streamfs::lab
