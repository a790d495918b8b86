// The simulator's generated workloads (lab/workload/generator.h) as records.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/wire/telemetry.h"

namespace streamfs::lab::python {

struct Generated {
  std::vector<wire::TelemetryRecord> records;
  bool starts_full = false;  // by its source or by custom, every page was written once before
};

// Generates `writes` page writes over about `pages` live pages, labelled with the workload's own
// vStreams.
// Throws std::invalid_argument for an unknown name (with the known ones) or impossible sizes.
Generated generated(const std::string& name, uint32_t pages, uint64_t writes, uint64_t seed);

std::vector<std::string> generator_names();

}  // namespace streamfs::lab::python
