#include "fuse-fs/frontend/metrics_json.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/io_sizes.h"
#include "base/log_histogram.h"
#include "base/wire/control.h"
#include "fuse-fs/frontend/meters.h"
#include "fuse-fs/frontend/op_times.h"

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

json size_json(const char* side, const char* op, const LogHistogram& sizes) {
  return {{"side", side}, {"op", op}, {"sum_bytes", sizes.sum}, {"buckets", buckets_json(sizes)}};
}

}  // namespace

json metrics_json(const Meters& meters, const IoSizes& device) {
  json bounds = json::array();
  for (size_t i = 0; i < kBounds; ++i) bounds.push_back(bound_us(i));
  json list = json::array();
  for (size_t i = 0; i < kOpNames.size(); ++i) {
    const LogHistogram times = meters.ops.of(static_cast<Op>(i));
    if (times.count() == 0) continue;
    list.push_back({{"op", kOpNames[i]},
                    {"sum_ns", times.sum},
                    {"counts", counts_by_bound(times)},
                    {"buckets", buckets_json(times)}});
  }
  return {{"schema", wire::kJsonSchema},
          {"version", STREAMFS_VERSION},
          {"bounds_us", std::move(bounds)},
          {"ops", std::move(list)},
          {"sizes",
           {size_json("kernel", "read", meters.sizes.of(IoSizes::Kind::kRead)),
            size_json("kernel", "write", meters.sizes.of(IoSizes::Kind::kWrite)),
            size_json("device", "read", device.of(IoSizes::Kind::kRead)),
            size_json("device", "write", device.of(IoSizes::Kind::kWrite))}}};
}

}  // namespace streamfs::frontend
