// Algorithms 1 and 2 of Yong, "vStream-FTL" (2021), to the letter: the baseline beside
// fuse-fs/placement/lifetime.h and cluster.h. No living pages, no seeding, no re-seeding.
// Thread safety: external.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace streamfs::learning::yong {

// Algorithm 1 (vSLI): L(v) = S(v) ÷ |D(v)| over dead pages.
class LifetimeIdentifier {
 public:
  void died(VStreamId vstream, uint64_t written_at, uint64_t died_at);
  // 0 while nothing has died.
  double lifetime(VStreamId vstream) const;

 private:
  struct Sum {
    uint64_t total = 0, pages = 0;
  };
  std::vector<Sum> sums_;  // by vStream, as far as any has died
};

struct Mapped {
  VStreamId vstream;
  double lifetime = 0;  // 0 = no history: stays where it is
  PStreamId pstream;
};

// Algorithm 2 (vSCM), one round: L_avg(p) is the mean of L(v) of the vStreams now on p; each goes
// to the pStream with the nearest. A pStream without vStreams has no L_avg and gets none.
void remap(std::vector<Mapped>& vstreams, uint32_t pstream_count);

}  // namespace streamfs::learning::yong
