// A learning daemon's report of savings (base/wire/control.h).
#pragma once

#include <nlohmann/json.hpp>

namespace streamfs::frontend {

inline nlohmann::json savings_report() {
  const nlohmann::json period = {{"since_ms", 1700000000000},    {"written_bytes", 4096000},
                                 {"nand_off_bytes", 6000000},    {"nand_placed_bytes", 4500000},
                                 {"nand_oracle_bytes", 4100000}, {"saved_bytes", 1500000},
                                 {"saved_low_bytes", -1},        {"saved_high_bytes", 1600000}};
  return {{"version", 1}, {"one_in", 64}, {"all", period}, {"month", period}};
}

}  // namespace streamfs::frontend
