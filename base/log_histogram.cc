#include "base/log_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace streamfs {

uint64_t LogHistogram::count() const {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

double LogHistogram::quantile(double share) const {
  const uint64_t all = count();
  if (all == 0) return 0;
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(all)));
  size_t bucket = 0;
  uint64_t seen = counts[0];
  while (seen < wanted && bucket + 1 < counts.size()) seen += counts[++bucket];
  return LogBuckets::middle(bucket);
}

LogHistogram LogHistogram::since(const LogHistogram& before) const {
  LogHistogram out;
  for (size_t i = 0; i < counts.size(); ++i)
    out.counts[i] = counts[i] - std::min(counts[i], before.counts[i]);
  out.sum = sum - std::min(sum, before.sum);
  return out;
}

}  // namespace streamfs
