// Statistics of an emulated SSD, in bytes: the same figures for the running device, `ssd-sim info`
// and every other output.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ssd/background.h"
#include "ssd/counters.h"
#include "ssd/latency.h"
#include "ssd/layout.h"

namespace streamfs::ssd {

struct StreamUse {
  uint64_t written_bytes = 0;
  uint64_t gc_bytes = 0;
};

// Counts since create() or the last reset, except live_bytes, physical_bytes, free_blocks, urgency,
// damaged_pages, bad_blocks and the reads at start, which describe the device at present. The NAND
// figures are unknown for a device that does not report them.
struct SsdStats {
  uint64_t written_bytes = 0, read_bytes = 0, trimmed_bytes = 0, flushes = 0;
  bool nand_known = true;
  uint64_t nand_bytes = 0, gc_bytes = 0, pad_bytes = 0, erases = 0;
  uint64_t idle_gc_bytes = 0, wear_bytes = 0;  // of gc_bytes: in idle time, to level wear
  uint64_t rmw_bytes = 0, rmw_read_bytes = 0;  // of writes that covered map units in part
  uint64_t live_bytes = 0, peak_live_bytes = 0, physical_bytes = 0;
  uint64_t free_blocks = 0;
  Urgency urgency = Urgency::kNone;
  // damaged_pages: spare areas that were found damaged when the image was opened.
  uint64_t damaged_pages = 0, bad_blocks = 0, program_failures = 0, erase_failures = 0;
  uint64_t media_errors = 0;  // reads of data that does not fit its checksum
  uint64_t unknown_placements = 0;
  VirtualTime time;
  std::vector<StreamUse> streams;
  // Numbers that only this FTL has, by name (ftl_counts.h).
  std::vector<std::pair<std::string_view, uint64_t>> ftl_counts;

  // NAND ÷ host bytes; none before the first write or if unknown.
  std::optional<double> waf() const;
  // physical ÷ peak live − 1; none before the first live page or if unknown.
  std::optional<double> effective_spare() const;
};

SsdStats stats_of(const Geometry& geometry, const SharedState& state);

// Adds the latencies and rates. If `known` is false, because the device does not report its NAND,
// they are null.
void add_to_json(nlohmann::json& json, const VirtualTime& time, bool known);

// Returns the `device` object of every --json output. Unknown figures are null.
nlohmann::json to_json(const SsdStats& stats);

}  // namespace streamfs::ssd
