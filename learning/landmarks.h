// Landmarks are the sixteen ages at which the model predicts whether a page still lives. The
// predictions add up to an expected lifetime.
//
// Lifetimes are on a bent axis: log2 of pages written, on which lifetimes that are short compared
// to the live data are compressed. Pages that die long before their block is collected cost nothing
// wherever they lie. The axis ends at the last landmark, because little is won by telling apart
// pages that outlive it.
// Thread safety: const after construction.
#pragma once

#include <array>
#include <cstdint>

#include "learning/logistic.h"

namespace streamfs::learning {

class Landmarks {
 public:
  // `live_pages`: pages live at once when the device is as full as it will be.
  explicit Landmarks(uint64_t live_pages);

  uint64_t live_pages() const { return live_pages_; }
  // Ascending, in pages written.
  const std::array<uint64_t, kLandmarks>& ages() const { return ages_; }
  // Returns the expected lifetime on the bent axis, 0 to longest().
  float lifetime(const Scores& scores) const;
  // Returns the same lifetime from the probabilities of living to each landmark.
  float lifetime_of(const std::array<float, kLandmarks>& lives) const;
  float longest() const { return longest_; }

 private:
  uint64_t live_pages_;
  std::array<uint64_t, kLandmarks> ages_{};
  std::array<float, kLandmarks> steps_{};  // distance on the bent axis from the landmark before
  float longest_ = 0;
};

}  // namespace streamfs::learning
