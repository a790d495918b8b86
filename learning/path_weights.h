// The weights of a logistic model over path tokens, a byte each, in 32nds. The daemon publishes
// them and the filesystem evaluates them when it places a write. Thread safety: const methods, any
// thread. Crash: memory only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/huge_pages.h"
#include "learning/landmarks.h"
#include "learning/logistic.h"
#include "learning/tokens.h"

namespace streamfs::learning {

class PathWeights {
 public:
  using Row = std::array<int8_t, kLandmarks>;
  static constexpr float kUnit = 1.0F / 32;  // weights beyond ±127 units are clamped
  static constexpr size_t kBytes = size_t{kRows} * sizeof(Row);

  PathWeights() : rows_(kRows) {}
  explicit PathWeights(const Logistic<kPathTokens>& model);

  // Returns the expected lifetime on the axis of `landmarks`.
  float lifetime(const Tokens<kPathTokens>& tokens, const Landmarks& landmarks) const;

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(rows_)); }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(rows_)); }

 private:
  HugeVector<Row> rows_;
};

}  // namespace streamfs::learning
