#include "learning/cluster.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace streamfs::learning {
namespace {

constexpr int kRoundsMax = 64;

struct Point {
  double x, weight;
  size_t sample;
};

// Points stay sorted, so a cluster is the range between two bounds.
class Clusters {
 public:
  Clusters(std::vector<Point> points, uint32_t k) : points_(std::move(points)), bounds_(k + 1) {
    seed_by_quantiles();
    for (int round = 0; round < kRoundsMax; ++round) {
      split_for_empty();
      if (!move_bounds()) break;
    }
    split_for_empty();
  }

  std::vector<uint32_t> ranks() const {
    std::vector<uint32_t> out(points_.size());
    for (uint32_t c = 0; c < k(); ++c) {
      for (size_t i = bounds_[c]; i < bounds_[c + 1]; ++i) out[points_[i].sample] = c;
    }
    return out;
  }

 private:
  uint32_t k() const { return static_cast<uint32_t>(bounds_.size() - 1); }
  bool empty(uint32_t c) const { return bounds_[c] == bounds_[c + 1]; }

  void seed_by_quantiles() {
    const double total = std::accumulate(points_.begin(), points_.end(), 0.0,
                                         [](double sum, const Point& p) { return sum + p.weight; });
    double sum = 0;
    size_t i = 0;
    for (uint32_t c = 0; c < k(); ++c) {
      bounds_[c] = i;
      const double end = total * (c + 1) / k();
      while (i < points_.size() && (sum + points_[i].weight / 2 < end || same_as_last(c, i))) {
        sum += points_[i++].weight;
      }
    }
    bounds_.back() = points_.size();
  }

  bool same_as_last(uint32_t c, size_t i) const {
    return i > bounds_[c] && points_[i].x <= points_[i - 1].x;
  }

  double spread(uint32_t c) const {
    return empty(c) ? -1 : points_[bounds_[c + 1] - 1].x - points_[bounds_[c]].x;
  }

  // Cuts the widest cluster at its widest gap; the empty one's bounds close up behind it.
  void split_for_empty() {
    for (uint32_t c = 0; c < k(); ++c) {
      if (!empty(c)) continue;
      uint32_t widest = 0;
      for (uint32_t o = 1; o < k(); ++o) widest = spread(o) > spread(widest) ? o : widest;
      if (spread(widest) <= 0) return;
      const size_t cut = widest_gap(widest);
      bounds_.erase(bounds_.begin() + c);  // one of the empty cluster's two equal bounds
      bounds_.insert(std::upper_bound(bounds_.begin(), bounds_.end(), cut), cut);
    }
  }

  size_t widest_gap(uint32_t c) const {
    size_t best = bounds_[c] + 1;
    for (size_t i = best; i < bounds_[c + 1]; ++i) {
      const auto gap = [&](size_t at) { return points_[at].x - points_[at - 1].x; };
      if (gap(i) > gap(best)) best = i;
    }
    return best;
  }

  double centroid(uint32_t c) const {
    double sum = 0, weight = 0;
    for (size_t i = bounds_[c]; i < bounds_[c + 1]; ++i) {
      sum += points_[i].x * points_[i].weight;
      weight += points_[i].weight;
    }
    return sum / weight;
  }

  // Assigns every point to the nearest centroid, which is a cut at each midpoint.
  bool move_bounds() {
    bool moved = false;
    std::vector<double> centres;
    for (uint32_t c = 0; c < k(); ++c) {
      centres.push_back(empty(c) ? std::numeric_limits<double>::quiet_NaN() : centroid(c));
    }
    for (uint32_t c = 0; c + 1 < k(); ++c) {
      if (std::isnan(centres[c]) || std::isnan(centres[c + 1])) continue;
      const double middle = (centres[c] + centres[c + 1]) / 2;
      const auto at = std::lower_bound(points_.begin(), points_.end(), middle,
                                       [](const Point& p, double x) { return p.x < x; });
      const auto bound = std::max(static_cast<size_t>(at - points_.begin()), bounds_[c]);
      moved |= bound != bounds_[c + 1];
      bounds_[c + 1] = bound;
    }
    return moved;
  }

  std::vector<Point> points_;
  std::vector<size_t> bounds_;
};

}  // namespace

std::vector<uint32_t> cluster_by_lifetime(const std::vector<Sample>& samples, uint32_t k) {
  SFS_ASSERT(k > 0);
  std::vector<Point> points;
  for (size_t i = 0; i < samples.size(); ++i) {
    points.push_back(
        {std::log(std::max(samples[i].lifetime, 1e-9)), std::max(samples[i].weight, 1e-6), i});
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  return Clusters(std::move(points), k).ranks();
}

}  // namespace streamfs::learning
