// The results of several policies on several workloads, as people and programs want them.
// Thread safety: values.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/replay/replay.h"

namespace streamfs::lab::ssd_sim {

struct Comparison {
  std::vector<std::string> workloads, placements, victims;
  std::vector<ReplayResult> results;  // by workload, then victim, then placement

  const ReplayResult& at(size_t workload, size_t victim, size_t placement) const {
    return results[(workload * victims.size() + victim) * placements.size() + placement];
  }
  // Returns (WAF of nosep − WAF) ÷ (WAF of nosep − the oracle's WAF); nullopt unless nosep and the
  // oracle are among the placements and their WAFs differ.
  std::optional<double> gap_closed(size_t workload, size_t victim, size_t placement) const;
};

std::string table_of(const Comparison& comparison);
std::string csv_of(const Comparison& comparison);
nlohmann::json json_of(const Comparison& comparison);

}  // namespace streamfs::lab::ssd_sim
