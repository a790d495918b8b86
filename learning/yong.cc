#include "learning/yong.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace streamfs::learning::yong {

void LifetimeIdentifier::died(VStreamId vstream, uint64_t written_at, uint64_t died_at) {
  if (vstream.value >= sums_.size()) sums_.resize(vstream.value + size_t{1});
  Sum& sum = sums_[vstream.value];
  sum.total += died_at - written_at;
  sum.pages += 1;
}

double LifetimeIdentifier::lifetime(VStreamId vstream) const {
  if (vstream.value >= sums_.size() || sums_[vstream.value].pages == 0) return 0;
  const Sum& sum = sums_[vstream.value];
  return static_cast<double>(sum.total) / static_cast<double>(sum.pages);
}

void remap(std::vector<Mapped>& vstreams, uint32_t pstream_count) {
  std::vector<double> sum(pstream_count, 0), members(pstream_count, 0);
  for (const Mapped& v : vstreams) {
    if (v.lifetime == 0) continue;
    sum[v.pstream.value] += v.lifetime;
    members[v.pstream.value] += 1;
  }
  for (Mapped& v : vstreams) {
    if (v.lifetime == 0) continue;
    double nearest = INFINITY;
    for (uint32_t p = 0; p < pstream_count; ++p) {
      const double distance = std::abs(v.lifetime - sum[p] / members[p]);
      if (members[p] > 0 && distance < nearest) {
        nearest = distance;
        v.pstream = PStreamId{static_cast<uint16_t>(p)};
      }
    }
  }
}

}  // namespace streamfs::learning::yong
