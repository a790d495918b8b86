#include "learning/classes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "learning/landmarks.h"

namespace streamfs::learning {
namespace {

constexpr double kForget = 0.5;  // of the volume, from cut to cut
// Old edges stay while their spread is below this multiple of what new ones leave, or so much more.
constexpr double kSettled = 1.25, kSettledMore = 0.01;

constexpr double kNoSay = 1e-3;  // of the volume

}  // namespace

Classes::Classes(uint32_t count, const Landmarks& landmarks)
    : longest_(landmarks.longest()),
      epoch_pages_(std::clamp<uint64_t>(landmarks.live_pages() / 16, 8192, 65536)) {
  count = std::clamp(count, 1U, kCountMax);
  for (uint32_t i = 1; i < count; ++i) {
    edges_.push_back(longest_ * static_cast<float>(i) / static_cast<float>(count));
  }
}

uint32_t Classes::bin_of(float lifetime) const {
  const float at = lifetime / longest_ * static_cast<float>(kBins);
  return static_cast<uint32_t>(std::clamp(at, 0.0F, static_cast<float>(kBins - 1)));
}

uint32_t Classes::place(float lifetime, bool follows) {
  const uint32_t cls = follows ? class_after(last_, lifetime, edges_) : of(lifetime);
  last_ = cls;
  count(lifetime);
  return cls;
}

void Classes::count(float lifetime) {
  ++volume_[bin_of(lifetime)];
  if (--left_ > 0) return;
  cut();
  left_ = epoch_ = std::min(2 * epoch_, epoch_pages_);
}

bool Classes::restore(std::vector<float> edges) {
  const auto on_axis = [&](float edge) { return edge >= 0 && edge <= longest_; };
  if (edges.size() != edges_.size() || !std::ranges::all_of(edges, on_axis) ||
      !std::ranges::is_sorted(edges))
    return false;
  edges_ = std::move(edges);
  return cut_ = true;
}

void Classes::cut() {
  const std::vector<float> fresh = best();
  if (!cut_ || spread(edges_) > kSettled * spread(fresh) + kSettledMore) edges_ = fresh;
  cut_ = true;
  for (double& volume : volume_) volume *= kForget;
}

// Dynamic programming over the bins: least[i] is the spread that the first i leave when they are
// cut into so many classes.
std::vector<float> Classes::best() const {
  using Row = std::array<double, kBins + 1>;
  Row weight{}, moment{}, square{};
  for (uint32_t i = 0; i < kBins; ++i) {
    const double at = i + 0.5;
    weight[i + 1] = weight[i] + volume_[i];
    moment[i + 1] = moment[i] + volume_[i] * at;
    square[i + 1] = square[i] + volume_[i] * at * at;
  }
  const auto cost = [&](uint32_t from, uint32_t to) {
    const double w = weight[to] - weight[from];
    if (w <= 0) return 0.0;
    const double m = moment[to] - moment[from];
    return std::max(0.0, square[to] - square[from] - m * m / w);
  };
  Row least{};
  for (uint32_t i = 0; i <= kBins; ++i) least[i] = cost(0, i);
  std::vector<std::array<uint32_t, kBins + 1>> begins;
  for (uint32_t cls = 1; cls < count(); ++cls) {
    Row next{};
    auto& begin = begins.emplace_back();
    for (uint32_t to = 0; to <= kBins; ++to) {
      next[to] = std::numeric_limits<double>::max();
      for (uint32_t from = 0; from <= to; ++from) {
        const double total = least[from] + cost(from, to);
        if (total < next[to]) {
          next[to] = total;
          begin[to] = from;
        }
      }
    }
    least = next;
  }
  std::vector<float> edges(count() - 1);
  uint32_t end = kBins;
  for (uint32_t cls = count() - 1; cls > 0; --cls) {
    end = begins[cls - 1][end];
    edges[cls - 1] = between(end);
  }
  return edges;
}

// Where to cut before a bin: in the middle of what nobody writes around there.
float Classes::between(uint32_t bin) const {
  const double little = kNoSay * std::accumulate(volume_.begin(), volume_.end(), 0.0);
  uint32_t low = bin, high = bin;
  while (low > 0 && volume_[low - 1] <= little) --low;
  while (high < kBins && volume_[high] <= little) ++high;
  return longest_ * static_cast<float>(low + high) / (2 * kBins);
}

// Within classes, of the volume; in bins squared.
double Classes::spread(const std::vector<float>& edges) const {
  double sum = 0, total = 0;
  uint32_t bin = 0;
  for (uint32_t cls = 0; cls <= edges.size(); ++cls) {
    const uint32_t end = cls < edges.size() ? bin_of(edges[cls]) : kBins;
    double w = 0, m = 0, s = 0;
    for (; bin < end; ++bin) {
      const double at = bin + 0.5;
      w += volume_[bin];
      m += volume_[bin] * at;
      s += volume_[bin] * at * at;
    }
    if (w > 0) sum += s - m * m / w;
    total += w;
  }
  return total > 0 ? sum / total : 0;
}

}  // namespace streamfs::learning
