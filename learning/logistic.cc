#include "learning/logistic.h"

#include <array>
#include <cmath>
#include <cstdint>

#include "learning/tokens.h"

namespace streamfs::learning {

template <uint32_t kCount>
Logistic<kCount>::Logistic() : rows_(kRows) {
  for (Row& row : rows_) {
    for (Half& half : row) half.gradients.fill(kGradientsFirst);
  }
}

template <uint32_t kCount>
Scores Logistic<kCount>::score(const Tokens<kCount>& tokens) const {
  Scores sum{};
  for (uint32_t i = 0; i < kCount; ++i) {
    const Row& row = rows_[row_of<kCount>(i, tokens[i])];
    for (uint32_t j = 0; j < kHalf; ++j) sum[j] += row[0].weights[j];
    for (uint32_t j = 0; j < kHalf; ++j) sum[kHalf + j] += row[1].weights[j];
  }
  return sum;
}

// Rows are taken together, changed together (which vectors do) and put back; of a row that two
// tokens of a write share one change stays.
template <uint32_t kCount>
void Logistic<kCount>::train(uint32_t landmark, const Tokens<kCount>& tokens, bool lived) {
  const uint32_t half = landmark / kHalf, one = landmark % kHalf;
  std::array<float, kCount> weights, known;
  float sum = 0;
  for (uint32_t i = 0; i < kCount; ++i) {
    const Half& row = rows_[row_of<kCount>(i, tokens[i])][half];
    weights[i] = row.weights[one];
    known[i] = row.gradients[one];
    sum += weights[i];
  }
  const float gradient = 1 / (1 + std::exp(-sum)) - (lived ? 1.0F : 0.0F);
  const float squared = gradient * gradient, step = kRate * gradient;
  for (uint32_t i = 0; i < kCount; ++i) {
    const float fresh = known[i] * kForget + squared;
    known[i] = fresh < kGradientsMin ? kGradientsMin : fresh;
    weights[i] -= step / std::sqrt(known[i]) + kShrink * weights[i];
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    Half& row = rows_[row_of<kCount>(i, tokens[i])][half];
    row.weights[one] = weights[i];
    row.gradients[one] = known[i];
  }
}

template class Logistic<kHistoryTokens>;
template class Logistic<kPathTokens>;

}  // namespace streamfs::learning
