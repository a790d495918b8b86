// Groups vStreams of similar lifetime by K-means in one dimension over log lifetime, so that each
// group shares a pStream.
//
// Yong's algorithm 2 leaves open where centroids start and what an empty cluster does. Here
// centroids start at the quantiles of log L, weighted by bytes written. If a cluster is empty, the
// widest one is split at its widest gap. Without these choices, no vStream would ever leave the
// default pStream.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace streamfs::learning {

struct Sample {
  VStreamId vstream;
  double lifetime = 1;  // > 0; any unit
  double weight = 0;    // recently written volume; any unit
};

// Returns a rank for each sample, in the order of `samples`: 0 (dies first) to k-1. If there are at
// most k distinct lifetimes, each has a rank of its own. Requires: k > 0.
std::vector<uint32_t> cluster_by_lifetime(const std::vector<Sample>& samples, uint32_t k);

// Returns the pStream of a rank. The longest-lived rank shares the default pStream with data of
// unknown lifetime.
constexpr PStreamId pstream_of_rank(uint32_t rank, uint32_t k) {
  return PStreamId{static_cast<uint16_t>(k - 1 - rank)};
}

}  // namespace streamfs::learning
