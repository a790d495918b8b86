// Computes the figures of iostat and top from two answers to "status".
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

// Returns {"seconds", "app_bytes", "written_bytes", "read_bytes", "trimmed_bytes", "flushes",
// "nand_bytes", "gc_bytes" (both null if the device does not report them), "waf" (NAND ÷ written in
// this interval), "nand_per_app_byte", "streams" [{"stream", "written_bytes", "gc_bytes", "waf"}]}.
// Bytes and flushes are those of the interval, not of a second. Counters that began anew meanwhile
// count from zero; a ratio to zero is null.
nlohmann::json difference_of(const nlohmann::json& before, const nlohmann::json& after,
                             double seconds);

// Returns the percentiles of the time of requests between two answers to "metrics": {"read",
// "write", "fsync"}, each as percentiles_json(). An operation is null if the mount does not report
// times.
nlohmann::json latencies_between(const nlohmann::json& before, const nlohmann::json& after);

// Returns object[key] per second of `interval`, of which `object` is a part; "-" if it is not
// known. Requires: interval["seconds"] is more than 0.
std::string per_second(const nlohmann::json& interval, const nlohmann::json& object,
                       const char* key, const Style& style);
std::string short_ratio(const nlohmann::json& object, const char* key);  // "1.23", or "-"

}  // namespace streamfs::tools
