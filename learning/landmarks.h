// Ages at which is asked whether a page lives on, and what the answers say together: how long it
// will live.
//
// Lifetimes are measured on a bent axis: log2 of pages written, in which what is short beside all
// that is live is drawn together, since what dies long before its block is collected costs nothing
// wherever it lies. Neither is much won by telling apart what outlives everything.
// Thread safety: const after construction.
#pragma once

#include <array>
#include <cstdint>

#include "learning/logistic.h"

namespace streamfs::learning {

class Landmarks {
 public:
  // `live_pages`: what is live at once when the device is as full as it will be.
  explicit Landmarks(uint64_t live_pages);

  uint64_t live_pages() const { return live_pages_; }
  // Ascending, in pages written.
  const std::array<uint64_t, kLandmarks>& ages() const { return ages_; }
  // The lifetime to be expected, from 0 to longest().
  float lifetime(const Scores& scores) const;
  float longest() const { return longest_; }

 private:
  uint64_t live_pages_;
  std::array<uint64_t, kLandmarks> ages_{};
  std::array<float, kLandmarks> steps_{};  // on the bent axis, from the landmark before
  float longest_ = 0;
};

}  // namespace streamfs::learning
