// Replays a workload on the page-mapped FTL without data; the result is deterministic.
// Thread safety: one replay of a workload at a time.
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
  // The oracle's: log2, quantile or threshold; best: the one with the lowest WAF. Replaces
  // policy.edges.
  std::string edges = "best";
  PolicyOptions policy;
  ssd::VictimOptions victim_options;
  double spare = 0.07;
  uint64_t base_pages = 0;       // `spare` is a share of this; 0: the peak of live pages
  uint32_t physical_blocks = 0;  // replaces base_pages and spare; no reserve is added
  // The device to replay on, with its streams replaced by one for each class of the placement.
  // Replaces spare, base_pages, physical_blocks and cell. Its block size counts for the device; a
  // policy sees policy.pages_per_block, which the caller should set to the same.
  std::optional<ssd::Geometry> device;
  // The number of write buffers for host writes, of one wordline each; 0 gives each frontier one.
  // If a frontier without a buffer is written, the least recently written frontier loses its
  // buffer, and its open wordline is padded. Copies count for none. With power-loss protection
  // nothing is padded.
  uint32_t write_buffers = 0;
  Prefill prefill;                // pages written once, in order, before the workload
  std::optional<ssd::Cell> cell;  // unless none, simulates time, for a plain shape of these cells
  double load = 0.5;              // of the paced host (ssd/latency.h)
  double warmup = 0;  // share, below 1, of the writes after the prefill that are not counted
  Progress progress;
  // The replay calls it after each batch with the counts since the start, prefill and warm-up
  // included.
  std::function<void(const ssd::Counters&)> sample;
};

struct ReplayResult {
  std::string placement, victim, edges;
  ssd::Counters counters;                // since the prefill and the warm-up
  std::optional<ssd::VirtualTime> time;  // with ReplayOptions::device or cell
  uint16_t classes = 0;
  uint64_t physical_pages = 0, peak_live_pages = 0, footprint_pages = 0;
  double waf() const;
  double effective_spare() const;  // physical ÷ peak live − 1
};

// Sets the workload's prefill, annotates it if the placement needs the future, and replays it;
// edges "best" replays it three times for an oracle.
// Errors: EINVAL for unknown names and impossible sizes, ENOSPC when the device is full, those of
// the workload and of the placement.
Result<ReplayResult> replay(Workload& workload, const ReplayOptions& options);

nlohmann::json to_json(const ReplayResult& result);

}  // namespace streamfs::lab
