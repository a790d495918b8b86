// Edges that cut predicted lifetimes (binary logarithms) into classes of equal written volume.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace streamfs::lab {

class QuantileEdges {
 public:
  // Requires: at least one class. Until learn() is called, the edges lie evenly from 2^8 to 2^20
  // pages.
  explicit QuantileEdges(uint16_t classes) : edges_(classes - 1u) {
    for (size_t i = 0; i < edges_.size(); ++i)
      edges_[i] = 8 + 12 * static_cast<double>(i) / std::max(1.0, classes - 2.0);
  }

  uint16_t class_of(double log2_life) const {
    return static_cast<uint16_t>(std::ranges::upper_bound(edges_, log2_life) - edges_.begin());
  }
  void add(double log2_life, double volume) { volumes_[bucket_of(log2_life)] += volume; }

  // Sets the edges to quantiles of the volume added since the last call. If none was added, all
  // edges move to the lowest bucket.
  void learn() {
    double all = 0, below = 0;
    for (const double volume : volumes_) all += volume;
    size_t next = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      below += volumes_[i];
      const double edge = static_cast<double>(i + 1) / kBucketsPerLog2;
      const auto classes = static_cast<double>(edges_.size() + 1);
      for (; next < edges_.size() && below >= all * static_cast<double>(next + 1) / classes; ++next)
        edges_[next] = edge;
    }
    volumes_.fill(0);
  }

 private:
  static constexpr size_t kBucketsPerLog2 = 10, kBuckets = 32 * kBucketsPerLog2;
  static size_t bucket_of(double log2_life) {
    return static_cast<size_t>(std::clamp(log2_life, 0.0, 31.9) * kBucketsPerLog2);
  }

  std::vector<double> edges_;
  std::array<double, kBuckets> volumes_{};
};

}  // namespace streamfs::lab
