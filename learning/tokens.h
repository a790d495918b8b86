// A write's tokens: what is known of it, alone and in combinations that say more together, each
// hashed to a row of weights.
// Thread safety: a pure function.
#pragma once

#include <array>
#include <cstdint>

#include "learning/write_view.h"

namespace streamfs::learning {

inline constexpr uint32_t kTokenValues = 1U << 16;
inline constexpr uint32_t kRows = 2 * kTokenValues;  // of weights
inline constexpr uint32_t kTokens = 40;

// Kinds of tokens share halves of the rows, so that a token fits two bytes: many writes wait with
// theirs for what becomes of them.
using Token = uint16_t;
using Tokens = std::array<Token, kTokens>;
static_assert(kTokenValues == 1U << (8 * sizeof(Token)));

// The row of weights of the token at a place.
constexpr uint32_t row_of(uint32_t place, Token token) {
  return (place < kTokens / 2 ? 0U : kTokenValues) + token;
}

Tokens tokens_of(const WriteView& write);

}  // namespace streamfs::learning
