// The weights of a logistic model over path tokens, a byte each, in 32nds. The learning daemon
// publishes them, and the filesystem evaluates them when it places a write.
// Thread safety: const methods, any thread. Crash: memory only.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/huge_pages.h"
#include "learning/landmarks.h"
#include "learning/logistic.h"
#include "learning/tokens.h"

namespace streamfs::learning {

using WeightRow = std::array<int8_t, kLandmarks>;
using WeightRows = std::span<const WeightRow, kRows>;
inline constexpr float kWeightUnit = 1.0F / 32;  // weights beyond ±127 units are clamped

// Returns the expected lifetime on the axis of `landmarks`. Allocates nothing. Takes no lock,
// except that threads in the first call wait until a static table is filled.
float lifetime_of(const Tokens<kPathTokens>& tokens, WeightRows rows, const Landmarks& landmarks);

class PathWeights {
 public:
  PathWeights() : rows_(kRows) {}
  // Replaces the weights by those of the model. Allocates nothing.
  void take(const Logistic<kPathTokens>& model);

  WeightRows rows() const { return WeightRows(rows_); }

 private:
  HugeVector<WeightRow> rows_;
};

}  // namespace streamfs::learning
