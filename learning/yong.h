// Algorithms 1 and 2 of Yong, "vStream-FTL" (2021), as published: the baseline for
// fuse-fs/placement/lifetime.h and cluster.h. They do not count live pages and do not seed
// clusters.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace streamfs::learning::yong {

// Algorithm 1 (vSLI): L(v) = S(v) ÷ |D(v)| over dead pages.
class LifetimeIdentifier {
 public:
  void died(VStreamId vstream, uint64_t written_at, uint64_t died_at);
  // Returns the mean lifetime in the unit of died(); 0 while no page has died.
  double lifetime(VStreamId vstream) const;

 private:
  struct Sum {
    uint64_t total = 0, pages = 0;
  };
  std::vector<Sum> sums_;  // by vStream, up to the highest with a death
};

struct Mapped {
  VStreamId vstream;
  double lifetime = 0;  // 0: no page has died; the vStream keeps its pStream
  PStreamId pstream;
};

// Algorithm 2 (vSCM), one round: L_avg(p) is the mean of L(v) over the vStreams on pStream p. Each
// vStream moves to the pStream with the nearest L_avg. An empty pStream has no L_avg and stays
// empty.
void remap(std::vector<Mapped>& vstreams, uint32_t pstream_count);

}  // namespace streamfs::learning::yong
