#include "learning/logistic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "learning/tokens.h"

namespace streamfs::learning {

Logistic::Logistic() : weights_(kRows), gradients_(kRows) {
  for (Scores& row : gradients_) row.fill(kGradientsFirst);
}

Scores Logistic::score(const Tokens& tokens) const {
  Scores sum{};
  for (const uint32_t row : tokens) {
    const Scores& weight = weights_[row];
    for (uint32_t j = 0; j < kLandmarks; ++j) sum[j] += weight[j];
  }
  return sum;
}

void Logistic::train(uint32_t landmark, const Tokens& tokens, bool lived) {
  float sum = 0;
  for (const uint32_t row : tokens) sum += weights_[row][landmark];
  const float gradient = 1 / (1 + std::exp(-sum)) - (lived ? 1.0F : 0.0F);
  for (const uint32_t row : tokens) {
    float& known = gradients_[row][landmark];
    known = std::max(known * kForget + gradient * gradient, kGradientsMin);
    float& weight = weights_[row][landmark];
    weight -= kRate * gradient / std::sqrt(known) + kShrink * weight;
  }
}

}  // namespace streamfs::learning
