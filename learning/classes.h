// Cuts the axis of lifetimes into classes by one-dimensional K-means, exact and weighted by the
// pages written. Edges move only if the gain is large: if they move, data of one lifetime changes
// its class and leaves its older pages behind in the earlier class.
// Thread safety: none. Crash: memory only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "learning/landmarks.h"

namespace streamfs::learning {

// The uncertainty of a predicted lifetime, on the axis of landmarks.h.
inline constexpr float kLifetimeDoubt = 1;

// Returns the class of a lifetime: the number of `edges`, ascending, that it reaches.
inline uint32_t class_of(float lifetime, std::span<const float> edges) {
  uint32_t cls = 0;
  while (cls < edges.size() && lifetime >= edges[cls]) ++cls;
  return cls;
}
// Returns the class of a page that follows a page of class `before` in its request. Data written
// together mostly dies together: the page gets class `before` unless its lifetime lies more than
// kLifetimeDoubt outside that class.
inline uint32_t class_after(uint32_t before, float lifetime, std::span<const float> edges) {
  const bool near = class_of(lifetime - kLifetimeDoubt, edges) <= before &&
                    before <= class_of(lifetime + kLifetimeDoubt, edges);
  return near ? before : class_of(lifetime, edges);
}

class Classes {
 public:
  // `count` is clamped to 1..kCountMax. Lifetimes are on the axis of `landmarks`. Until the first
  // cut, the classes are equally wide.
  Classes(uint32_t count, const Landmarks& landmarks);

  static constexpr uint32_t kCountMax = 128;

  uint32_t count() const { return static_cast<uint32_t>(edges_.size()) + 1; }
  // Returns the class of a page that is written, and counts the page. `follows`: the page placed
  // last belongs to the same request (class_after()).
  uint32_t place(float lifetime, bool follows);
  // Counts a page that is written, and cuts again at the end of an epoch.
  void count(float lifetime);
  // Returns the class of a lifetime. Changes nothing.
  uint32_t of(float lifetime) const { return class_of(lifetime, edges_); }
  // Returns the lower bound of each class but the first, ascending.
  const std::vector<float>& edges() const { return edges_; }
  // Sets the edges to those of an earlier object with this count. Returns false, and changes
  // nothing, if they are of another number, not ascending or off the axis.
  bool restore(std::vector<float> edges);

 private:
  static constexpr uint32_t kBins = 128;
  static constexpr uint64_t kFirstEpoch = 1024;  // pages; epochs double up to epoch_pages_
  uint32_t bin_of(float lifetime) const;
  void cut();
  std::vector<float> best() const;
  float between(uint32_t bin) const;
  double spread(const std::vector<float>& edges) const;

  const float longest_;
  const uint64_t epoch_pages_;  // the longest epoch: pages written between two cuts
  uint64_t epoch_ = kFirstEpoch, left_ = kFirstEpoch;  // pages
  std::vector<float> edges_;
  std::array<double, kBins> volume_{};  // pages written by lifetime, halved at each cut
  uint32_t last_ = 0;                   // class of the page placed last
  bool cut_ = false;                    // cut() has run
};

}  // namespace streamfs::learning
