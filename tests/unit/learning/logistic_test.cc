#include "learning/logistic.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>

#include "learning/tokens.h"
#include "learning/write_view.h"

namespace streamfs::learning {
namespace {

// Writes that differ in length only live with a probability that only length tells. A weight
// learned online trembles, so the mean score has to be right: in order, and on the right side of
// even.
TEST(Logistic, ItsScoresAreInTheOrderOfWhatItWasShown) {
  constexpr int kWarmUp = 100'000, kBetween = 10'000, kLooks = 30;
  Logistic<kHistoryTokens> model;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform;
  const auto true_chance = [](uint8_t length) { return (length + 1) / 10.0; };
  constexpr uint8_t kLengths = 9;
  std::array<double, kLengths> mean{};
  WriteView write;
  for (int i = 0; i < kWarmUp + kLooks * kBetween; ++i) {
    write.length = static_cast<uint8_t>(random() % kLengths);
    model.train(2, tokens_of(write), uniform(random) < true_chance(write.length));
    if (i < kWarmUp || i % kBetween != 0) continue;
    for (write.length = 0; write.length < kLengths; ++write.length) {
      const Scores scores = model.score(tokens_of(write));
      mean[write.length] += double{scores[2]} / kLooks;
      EXPECT_EQ(scores[1], 0.0F) << "a landmark learns nothing from another's";
    }
  }
  for (uint8_t length = 1; length < kLengths; ++length) {
    EXPECT_GT(mean[length], mean[length - 1] + 0.05);
  }
  EXPECT_LT(mean[kLengths / 2 - 1], 0);
  EXPECT_GT(mean[kLengths / 2 + 1], 0);
}

TEST(Tokens, TellWritesApartAndAreTheSameForTheSame) {
  WriteView one, other;
  EXPECT_EQ(tokens_of(one), tokens_of(other));
  other.tail = 3;
  EXPECT_NE(tokens_of(one), tokens_of(other));
  EXPECT_LT(row_of<kHistoryTokens>(kHistoryTokens - 1, UINT16_MAX), kRows);
  EXPECT_NE(row_of<kHistoryTokens>(0, 7), row_of<kHistoryTokens>(kHistoryTokens - 1, 7))
      << "they share no rows";
}

}  // namespace
}  // namespace streamfs::learning
