// Logistic regression over hashed tokens, one for each of sixteen landmarks, learned one write
// at a time (AdaGrad, with gradients that are slowly forgotten so that it follows what changes).
//
// Landmark j is an age; model j says how likely a page lives at least so long. Training takes each
// write when it has reached that age, dead or not: no label is waited for, so none is missing from
// those that live long (landmarking: van Houwelingen, "Dynamic prediction by landmarking in event
// history analysis", 2007). Weights shrink at each step: scores put writes in the right order, but
// lie nearer to zero than log odds would, so they are no probabilities.
// Thread safety: none. Crash: nothing persistent.
#pragma once

#include <array>
#include <cstdint>

#include "base/huge_pages.h"
#include "learning/tokens.h"

namespace streamfs::learning {

inline constexpr uint32_t kLandmarks = 16;
using Scores = std::array<float, kLandmarks>;  // towards log odds

class Logistic {
 public:
  Logistic();
  Scores score(const Tokens& tokens) const;
  // `lived`: whether the write with these tokens was alive at landmark j's age.
  void train(uint32_t landmark, const Tokens& tokens, bool lived);

 private:
  static constexpr float kRate = 0.025F;
  // Of a weight, at each step: tokens of one place must not hold on to what once happened there
  // when tokens that hold everywhere say the same.
  static constexpr float kShrink = 0.0006F;
  static constexpr float kForget = 0.9999F;      // of what a row has of squared gradients
  static constexpr float kGradientsMin = 1e-3F;  // or a row that is always right gets huge steps
  static constexpr float kGradientsFirst = 1e-2F;

  // What training one landmark reads of a row is one line of the cache.
  static constexpr uint32_t kHalf = kLandmarks / 2;
  struct alignas(64) Half {
    std::array<float, kHalf> weights{};
    std::array<float, kHalf> gradients{};  // squared, summed
  };
  using Row = std::array<Half, 2>;

  HugeVector<Row> rows_;
};

}  // namespace streamfs::learning
