#include "learning/path_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <random>

#include "base/wire/model_table.h"
#include "learning/landmarks.h"
#include "learning/logistic.h"
#include "learning/path_weights.h"
#include "learning/request.h"
#include "learning/tokens.h"
#include "learning/write_view.h"

namespace streamfs::learning {
namespace {

constexpr uint64_t kLivePages = 16384;

PathView random_view(std::mt19937& random) {
  const auto below = [&](uint32_t end) { return static_cast<uint8_t>(random() % end); };
  return {.page = random() % 2048,
          .vstream = below(2),
          .expected = below(2),
          .length = below(3),
          .offset = below(2),
          .tail = below(2),
          .age = below(wire::kAgeClasses),
          .file_place = below(2)};
}

TEST(PathTokens, AreEqualExactlyForViewsThatAreAlike) {
  std::mt19937 random(1);
  int alike = 0;
  for (int i = 0; i < 100'000; ++i) {
    const PathView one = random_view(random), other = random_view(random);
    ASSERT_EQ(one.like(other), tokens_of(one) == tokens_of(other));
    alike += one.like(other) ? 1 : 0;
  }
  EXPECT_GT(alike, 10);
}

TEST(PathWeights, ABytePerWeightPredictsAsTheModelDoes) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> uniform;
  Logistic<kPathTokens> model;
  for (int i = 0; i < 300'000; ++i) {
    const PathView view = random_view(random);
    const auto landmark = static_cast<uint32_t>(random() % kLandmarks);
    const double chance = (view.age + 1.0) / (wire::kAgeClasses + 1.0);
    model.train(landmark, tokens_of(view), uniform(random) < chance);
  }
  const Landmarks landmarks(kLivePages);
  PathWeights weights;
  const PathWeights none;
  weights.take(model);
  double error = 0, moved = 0;
  for (int i = 0; i < 1000; ++i) {
    const Tokens<kPathTokens> tokens = tokens_of(random_view(random));
    const float exact = landmarks.lifetime(model.score(tokens));
    error +=
        std::abs(double{lifetime_of(tokens, weights.rows(), landmarks)} - double{exact}) / 1000;
    moved += std::abs(double{lifetime_of(tokens, none.rows(), landmarks)} - double{exact}) / 1000;
  }
  EXPECT_LT(error, 0.06);
  EXPECT_GT(moved, 20 * error) << "the test shows nothing if the model learned nothing";
}

// Two vStreams take turns. Their pages die after 1/64 and 1/2 of the live pages are written.
TEST(PathModel, TellsVStreamsApart) {
  PathModel model(2 * kLivePages, kLivePages);
  std::array<double, 2> sum{};
  std::array<uint64_t, 2> written{};
  constexpr std::array<uint64_t, 2> kOwnPages = {kLivePages / 128, kLivePages / 4};
  for (uint64_t i = 0; i < 20 * kLivePages; ++i) {
    if (i % (kLivePages / 16) == 0) model.snapshot();
    const uint32_t v = i % 2;
    const uint64_t page = v * kLivePages + written[v]++ % kOwnPages[v];
    model.write({.page = page, .pages = 1, .whole_pages = 1, .vstream = static_cast<uint16_t>(v)},
                [&](float lifetime, bool follows) {
                  EXPECT_FALSE(follows);
                  if (i >= 15 * kLivePages) sum[v] += double{lifetime};
                });
  }
  EXPECT_EQ(model.clock(), 20 * kLivePages);
  EXPECT_GT(sum[1] / (2.5 * kLivePages), sum[0] / (2.5 * kLivePages) + 2);
}

TEST(PathModel, PredictsByTheLastSnapshot) {
  PathModel model(kLivePages, kLivePages);
  const auto lifetime_of_a_write = [&] {
    float found = 0;
    model.write({.page = 1, .pages = 1, .whole_pages = 1}, [&](float l, bool) { found = l; });
    return found;
  };
  const float untaught = lifetime_of_a_write();
  for (uint64_t i = 0; i < 4 * kLivePages; ++i) ASSERT_EQ(lifetime_of_a_write(), untaught);
  model.snapshot();
  const float taught = lifetime_of_a_write();
  EXPECT_LT(taught, untaught - 2) << "the page dies at once";
  PathModel other(kLivePages, kLivePages);
  other.restore(model.learned());
  other.write({.page = 1, .pages = 1, .whole_pages = 1},
              [&](float l, bool) { EXPECT_EQ(l, taught); });
}

TEST(PathModel, APageBeyondTheDeviceGetsTheLongestLifetime) {
  PathModel model(8, kLivePages);
  int placed = 0;
  model.write({.page = 7, .pages = 2, .whole_pages = 2}, [&](float lifetime, bool follows) {
    EXPECT_EQ(follows, placed == 1);
    if (placed++ == 1) {
      EXPECT_EQ(lifetime, model.landmarks().longest());
    }
  });
  EXPECT_EQ(model.clock(), 1U);
  model.trim(8, 1);
}

}  // namespace
}  // namespace streamfs::learning
