#include "learning/path_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "learning/landmarks.h"
#include "learning/logistic.h"
#include "learning/tokens.h"

namespace streamfs::learning {
namespace {

// The logistic function of a sum of weights, in kWeightUnit; beyond the ends it is 0 or 1 to three
// digits.
constexpr int32_t kSumMax = 255;
using Chances = std::array<float, 2 * kSumMax + 1>;

size_t place_of(int32_t sum) {
  return static_cast<size_t>(std::clamp(sum, -kSumMax, kSumMax) + kSumMax);
}

const Chances& chances() {
  static const Chances table = [] {
    Chances out;
    for (int32_t sum = -kSumMax; sum <= kSumMax; ++sum)
      out[place_of(sum)] = 1 / (1 + std::exp(-static_cast<float>(sum) * kWeightUnit));
    return out;
  }();
  return table;
}

// Rounds weights to whole units, halves away from zero. Each step is a loop of its own because
// compilers vectorise such loops.
void round_to_units(std::span<const float, kHalfLandmarks> weights,
                    std::span<int8_t, kHalfLandmarks> out) {
  std::array<float, kHalfLandmarks> units;
  for (uint32_t j = 0; j < kHalfLandmarks; ++j)
    units[j] = std::min(std::max(weights[j] / kWeightUnit, -127.0F), 127.0F);
  std::array<int32_t, kHalfLandmarks> rounded;
  for (uint32_t j = 0; j < kHalfLandmarks; ++j)
    rounded[j] = static_cast<int32_t>(units[j] + std::copysign(0.5F, units[j]));
  for (uint32_t j = 0; j < kHalfLandmarks; ++j) out[j] = static_cast<int8_t>(rounded[j]);
}

}  // namespace

void PathWeights::take(const Logistic<kPathTokens>& model) {
  for (uint32_t row = 0; row < kRows; ++row) {
    const std::span<int8_t, kLandmarks> out(rows_[row]);
    round_to_units(model.weights(row, 0), out.first<kHalfLandmarks>());
    round_to_units(model.weights(row, 1), out.last<kHalfLandmarks>());
  }
}

float lifetime_of(const Tokens<kPathTokens>& tokens, WeightRows rows, const Landmarks& landmarks) {
  std::array<int16_t, kLandmarks> sums{};
  for (uint32_t i = 0; i < kPathTokens; ++i) {
    const WeightRow& row = rows[row_of<kPathTokens>(i, tokens[i])];
    for (uint32_t j = 0; j < kLandmarks; ++j) sums[j] = static_cast<int16_t>(sums[j] + row[j]);
  }
  const auto& chance = chances();
  std::array<float, kLandmarks> lives;
  for (uint32_t j = 0; j < kLandmarks; ++j) lives[j] = chance[place_of(sums[j])];
  return landmarks.lifetime_of(lives);
}

}  // namespace streamfs::learning
