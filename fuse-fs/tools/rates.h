// What happened between two answers to "status": the figures of iostat and top.
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

// {"seconds", "app_bytes", "written_bytes", "read_bytes", "trimmed_bytes", "flushes", "nand_bytes",
// "gc_bytes" (both null where the device does not tell), "waf" (NAND ÷ written in this interval),
// "nand_per_app_byte", "streams" [{"stream", "written_bytes",
// "gc_bytes", "waf"}]}. Bytes and flushes are those of the interval, not a second's. Counters that
// began anew meanwhile count from zero; a ratio of nothing is null.
nlohmann::json difference_of(const nlohmann::json& before, const nlohmann::json& after,
                             double seconds);

// How long requests took between two answers to "metrics": {"read", "write", "fsync"}, each
// {"count", "p50_us", "p99_us"}, where a quantile is the bound that so many stayed within. Null
// where there were none, they took longer than any bound, or the mount does not tell.
nlohmann::json latencies_between(const nlohmann::json& before, const nlohmann::json& after);

// `key` of an interval, a second's share; "-" if it is not known.
std::string per_second(const nlohmann::json& interval, const nlohmann::json& object,
                       const char* key, const Style& style);
std::string short_ratio(const nlohmann::json& object, const char* key);  // "1.23", or "-"

}  // namespace streamfs::tools
