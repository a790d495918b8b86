// Sixteen logistic regressions over hashed tokens, one for each landmark. They learn one write at a
// time by AdaGrad, whose gradient sums are slowly forgotten, so that the models follow a changing
// workload.
//
// Landmark j is an age; model j scores how likely a page lives at least so long. A write trains
// model j when it reaches that age, whether it is dead or alive. Training never waits for a death,
// so long-lived writes are not missing from the sample (landmarking: van Houwelingen, "Dynamic
// prediction by landmarking in event history analysis", 2007). Weights shrink at each step: scores
// order writes correctly, but lie nearer to zero than log odds and are no probabilities.
// Thread safety: none. Crash: memory only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/huge_pages.h"
#include "learning/tokens.h"

namespace streamfs::learning {

inline constexpr uint32_t kLandmarks = 16, kHalfLandmarks = kLandmarks / 2;
using Scores = std::array<float, kLandmarks>;  // shrunk log odds of living that long

template <uint32_t kCount>
class Logistic {
 public:
  Logistic();
  Scores score(const Tokens<kCount>& tokens) const;
  // `lived`: whether the write with these tokens was alive at the age of `landmark`.
  void train(uint32_t landmark, const Tokens<kCount>& tokens, bool lived);
  // Returns the weights of a row for the first half of the landmarks (0) or the second (1).
  std::span<const float, kHalfLandmarks> weights(uint32_t row, uint32_t half) const {
    return rows_[row][half].weights;
  }
  // Returns the sum of the squared gradients of a weight's steps, slowly forgotten. A large sum
  // makes small steps.
  float gradients(uint32_t row, uint32_t landmark) const {
    return rows_[row][landmark / kHalf].gradients[landmark % kHalf];
  }
  // Sets a weight and its sum of squared gradients, as weights() and gradients() returned them.
  void set(uint32_t row, uint32_t landmark, float weight, float gradients) {
    Half& half = rows_[row][landmark / kHalf];
    half.weights[landmark % kHalf] = weight;
    half.gradients[landmark % kHalf] = std::max(gradients, kGradientsMin);
  }

 private:
  static constexpr float kRate = 0.025F;
  // The share that a weight loses at each step. It moves knowledge from the tokens of single places
  // to the tokens that occur everywhere, if both predict the same.
  static constexpr float kShrink = 0.0006F;
  static constexpr float kForget = 0.9999F;      // decay of a row's squared gradients, per step
  static constexpr float kGradientsMin = 1e-3F;  // bounds the steps of a row that is always right
  static constexpr float kGradientsFirst = 1e-2F;

  // Training one landmark reads one cache line of each row.
  static constexpr uint32_t kHalf = kHalfLandmarks;
  struct alignas(64) Half {
    std::array<float, kHalf> weights{};
    std::array<float, kHalf> gradients{};  // squared, summed
  };
  using Row = std::array<Half, 2>;

  HugeVector<Row> rows_;
};

}  // namespace streamfs::learning
