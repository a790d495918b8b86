// Computes a write's tokens: each is a feature, or a combination of features, hashed to a row of
// weights.
// History tokens need what LifetimeModel remembers; path tokens need only what the filesystem knows
// when it places a write.
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>

#include "learning/write_view.h"

namespace streamfs::learning {

inline constexpr uint32_t kTokenValues = 1U << 16;
inline constexpr uint32_t kRows = 2 * kTokenValues;  // of weights
inline constexpr uint32_t kHistoryTokens = 40, kPathTokens = 24;

// The first half of a write's tokens shares one half of the rows, the second half the other. A
// token thus fits two bytes, which saves memory: writes keep their tokens until the last landmark.
using Token = uint16_t;
template <uint32_t kCount>
using Tokens = std::array<Token, kCount>;
static_assert(kTokenValues == 1U << (8 * sizeof(Token)));

// Returns the row of weights of the token at index `place` of Tokens<kCount>.
template <uint32_t kCount>
constexpr uint32_t row_of(uint32_t place, Token token) {
  return (place < kCount / 2 ? 0U : kTokenValues) + token;
}

Tokens<kHistoryTokens> tokens_of(const WriteView& write);
Tokens<kPathTokens> tokens_of(const PathView& write);

}  // namespace streamfs::learning
