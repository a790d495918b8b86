// Reads the histograms of answers to "metrics" (base/wire/control.h), and formats them.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/log_histogram.h"
#include "fuse-fs/tools/output.h"

namespace streamfs::tools {

// kTimes: operations by their time, in ns. kSizes: reads and writes by their size, in bytes.
enum class Measure : uint8_t { kTimes, kSizes };

struct NamedHistogram {
  nlohmann::json keys;  // the fields that say which requests these are
  std::string name;     // the same as a column's title
  LogHistogram values;
};

// Returns the requests between two answers to "metrics"; if `before` is null, those since the
// mount. Returns nullopt if the mount does not report them.
std::optional<std::vector<NamedHistogram>> histograms_between(const nlohmann::json& before,
                                                              const nlohmann::json& after,
                                                              Measure measure);

// Returns {"count", "p50_us", "p99_us", "p999_us", "max_us"}, with two significant digits. All but
// "count" are null if the histogram is empty.
nlohmann::json percentiles_json(const LogHistogram& times_ns);
// Returns a list of the keys, "sum_ns" or "sum_bytes", "buckets" as those of "metrics", and
// "count", for times with the percentiles.
nlohmann::json histograms_json(const std::vector<NamedHistogram>& histograms, Measure measure);
// Returns a table with a row for each power of two of microseconds or bytes, from the least to the
// largest that occurred, and then the percentiles of times. A request is in the first row that it
// does not exceed. Each histogram that is not empty has a column.
std::string histograms_text(const std::vector<NamedHistogram>& histograms, Measure measure,
                            const Style& style);

std::string duration_text(double ns, const Style& style);  // "1.02ms", or 1024000

}  // namespace streamfs::tools
