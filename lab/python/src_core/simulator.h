// Computes the write amplification of a placement policy: replays records on the emulated SSD's
// page-mapped FTL, as ssd-sim replays traces. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "base/wire/telemetry.h"
#include "lab/python/src_core/record_source.h"

namespace streamfs::lab::python {

struct DeviceSettings {
  double spare = 0.07;  // ÷ peak live pages; reserve blocks come on top
  uint32_t block_pages = 256;
  double warmup = 0.3;  // share of the writes before counting starts
  std::string victim = "greedy";
  std::string gc_mode =
      "same";  // where the device puts copies of what a host tagged (ssd/geometry.h)
};

struct NoRoom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the write amplification of `placement`, one of placement_names(). "tags" and "tags-aged"
// read `tags`, one pStream for each page written. `releases` close the open block of a class, under
// any placement. `streams` 0 is the policy's own number. `gc_mode` applies to "tags" and to
// host-only policies; the others choose where copies go.
// Throws std::invalid_argument for an unknown name, a wrong number of tags, or a release of a
// number that is not below `streams`; NoRoom for a device that is too small to collect its garbage.
double waf_of(std::span<const wire::TelemetryRecord> records, const std::string& placement,
              uint32_t streams, std::span<const uint8_t> tags, const DeviceSettings& settings,
              std::span<const Release> releases = {});

}  // namespace streamfs::lab::python
