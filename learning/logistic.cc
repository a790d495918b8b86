#include "learning/logistic.h"

#include <array>
#include <cmath>
#include <cstdint>

#include "learning/tokens.h"

namespace streamfs::learning {

Logistic::Logistic() : weights_(kRows), gradients_(kRows) {
  for (Scores& row : gradients_) row.fill(kGradientsFirst);
}

Scores Logistic::score(const Tokens& tokens) const {
  Scores sum{};
  for (uint32_t i = 0; i < kTokens; ++i) {
    const Scores& weight = weights_[row_of(i, tokens[i])];
    for (uint32_t j = 0; j < kLandmarks; ++j) sum[j] += weight[j];
  }
  return sum;
}

// Rows are taken together, changed together (which vectors do) and put back; of a row that two
// tokens of a write share one change stays.
void Logistic::train(uint32_t landmark, const Tokens& tokens, bool lived) {
  std::array<float, kTokens> weights, known;
  float sum = 0;
  for (uint32_t i = 0; i < kTokens; ++i) {
    weights[i] = weights_[row_of(i, tokens[i])][landmark];
    known[i] = gradients_[row_of(i, tokens[i])][landmark];
    sum += weights[i];
  }
  const float gradient = 1 / (1 + std::exp(-sum)) - (lived ? 1.0F : 0.0F);
  const float squared = gradient * gradient, step = kRate * gradient;
  for (uint32_t i = 0; i < kTokens; ++i) {
    const float fresh = known[i] * kForget + squared;
    known[i] = fresh < kGradientsMin ? kGradientsMin : fresh;
    weights[i] -= step / std::sqrt(known[i]) + kShrink * weights[i];
  }
  for (uint32_t i = 0; i < kTokens; ++i) {
    weights_[row_of(i, tokens[i])][landmark] = weights[i];
    gradients_[row_of(i, tokens[i])][landmark] = known[i];
  }
}

}  // namespace streamfs::learning
