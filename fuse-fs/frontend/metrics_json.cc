#include "fuse-fs/frontend/metrics_json.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/log_histogram.h"
#include "base/wire/control.h"

namespace streamfs::frontend {

using nlohmann::json;

namespace {

// Upper bounds of "counts". Each is also the upper bound of a fine bucket, so "counts" are exact.
constexpr size_t kBounds = 23;
constexpr uint64_t bound_us(size_t i) {
  return uint64_t{1} << i;
}

std::array<uint64_t, kBounds + 1> counts_by_bound(const LogHistogram& times_ns) {
  std::array<uint64_t, kBounds + 1> out{};
  size_t at = 0;
  for (size_t bucket = 0; bucket < LogBuckets::kCount; ++bucket) {
    while (at < kBounds && LogBuckets::up_to(bucket) > bound_us(at) * 1000) ++at;
    out[at] += times_ns.counts[bucket];
  }
  return out;
}

json buckets_json(const LogHistogram& histogram) {
  json out = json::array();
  for (size_t i = 0; i < LogBuckets::kCount; ++i) {
    if (histogram.counts[i] == 0) continue;
    out.push_back({LogBuckets::above(i), LogBuckets::up_to(i), histogram.counts[i]});
  }
  return out;
}

}  // namespace

json metrics_json(const OpTimes& ops) {
  json bounds = json::array();
  for (size_t i = 0; i < kBounds; ++i) bounds.push_back(bound_us(i));
  json list = json::array();
  for (size_t i = 0; i < kOpNames.size(); ++i) {
    const LogHistogram times = ops.of(static_cast<Op>(i));
    if (times.count() == 0) continue;
    list.push_back({{"op", kOpNames[i]},
                    {"sum_ns", times.sum},
                    {"counts", counts_by_bound(times)},
                    {"buckets", buckets_json(times)}});
  }
  return {{"schema", wire::kJsonSchema},
          {"version", STREAMFS_VERSION},
          {"bounds_us", std::move(bounds)},
          {"ops", std::move(list)}};
}

}  // namespace streamfs::frontend
