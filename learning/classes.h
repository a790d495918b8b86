// Lifetimes cut into classes, where what is written comes apart best: one-dimensional K-means by
// volume, exact. Cuts move only when that is worth it, because whatever changes its class leaves
// older data of another lifetime behind.
// Thread safety: none. Crash: memory only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "learning/landmarks.h"

namespace streamfs::learning {

class Classes {
 public:
  // At most kCountMax classes, of lifetimes on the axis of these landmarks.
  Classes(uint32_t count, const Landmarks& landmarks);

  static constexpr uint32_t kCountMax = 128;

  uint32_t count() const { return static_cast<uint32_t>(edges_.size()) + 1; }
  // The class of a page that is written. `follows`: another page of its request, placed before.
  uint32_t place(float lifetime, bool follows);
  uint32_t of(float lifetime) const {
    uint32_t cls = 0;
    while (cls < edges_.size() && lifetime >= edges_[cls]) ++cls;
    return cls;
  }
  // Where each class but the first begins, ascending.
  const std::vector<float>& edges() const { return edges_; }

 private:
  static constexpr uint32_t kBins = 128;
  static constexpr uint64_t kFirstEpoch = 1024;  // each is twice as long as the one before
  static constexpr float kDoubt = 1;             // of a lifetime, on its axis (landmarks.h)
  uint32_t bin_of(float lifetime) const;
  void cut();
  std::vector<float> best() const;
  float between(uint32_t bin) const;
  double spread(const std::vector<float>& edges) const;

  const float longest_;
  const uint64_t epoch_pages_;  // written, and the cuts are looked at again
  uint64_t epoch_ = kFirstEpoch, left_ = kFirstEpoch;
  std::vector<float> edges_;
  std::array<double, kBins> volume_{};
  uint32_t last_ = 0;  // class
  bool cut_ = false;   // ever
};

}  // namespace streamfs::learning
