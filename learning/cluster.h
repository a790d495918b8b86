// vStreams of like lifetime share a pStream: K-means in one dimension over log lifetime.
//
// Yong's algorithm 2 leaves the start and the empty cluster open. Here centroids start at the
// quantiles of log L weighted by bytes written, and a cluster that loses all its members takes
// half of the widest one: else nothing ever leaves the default pStream.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace streamfs::learning {

struct Sample {
  VStreamId vstream;
  double lifetime = 1;  // > 0; any unit
  double weight = 0;    // what was written lately; any unit
};

// Ranks 0 (dies first) .. k-1, one a sample. With at most k distinct samples each has its own.
std::vector<uint32_t> cluster_by_lifetime(const std::vector<Sample>& samples, uint32_t k);

// The pStream of a rank of k: the longest-lived share the default one with what nobody knows yet.
constexpr PStreamId pstream_of_rank(uint32_t rank, uint32_t k) {
  return PStreamId{static_cast<uint16_t>(k - 1 - rank)};
}

}  // namespace streamfs::learning
