// A write's tokens: what is known of it, alone and in combinations that say more together, each
// hashed to a row of weights.
// Thread safety: a pure function.
#pragma once

#include <array>
#include <cstdint>

#include "learning/write_view.h"

namespace streamfs::learning {

inline constexpr uint32_t kRowBits = 17;
inline constexpr uint32_t kRows = 1U << kRowBits;
inline constexpr uint32_t kTokens = 40;

using Tokens = std::array<uint32_t, kTokens>;  // rows of weights, below kRows

Tokens tokens_of(const WriteView& write);

}  // namespace streamfs::learning
