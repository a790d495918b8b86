// A write's tokens: its features, single and in combinations, each hashed to a row of weights.
// Thread safety: a pure function.
#pragma once

#include <array>
#include <cstdint>

#include "learning/write_view.h"

namespace streamfs::learning {

inline constexpr uint32_t kTokenValues = 1U << 16;
inline constexpr uint32_t kRows = 2 * kTokenValues;  // of weights
inline constexpr uint32_t kTokens = 40;

// The first half of the tokens shares one half of the rows, the second half the other. A token
// thus fits two bytes, because many writes keep their tokens until they reach the last landmark.
using Token = uint16_t;
using Tokens = std::array<Token, kTokens>;
static_assert(kTokenValues == 1U << (8 * sizeof(Token)));

// Returns the row of weights of the token at index `place` of Tokens.
constexpr uint32_t row_of(uint32_t place, Token token) {
  return (place < kTokens / 2 ? 0U : kTokenValues) + token;
}

Tokens tokens_of(const WriteView& write);

}  // namespace streamfs::learning
