#include "learning/landmarks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "learning/logistic.h"

namespace streamfs::learning {
namespace {

// log2 of age ÷ live pages. Closest where it matters most: around the time it takes to write all
// that is live once.
constexpr std::array<float, kLandmarks> kAges = {-9, -7,   -6, -5,   -4, -3.5, -3, -2.5,
                                                 -2, -1.5, -1, -0.5, 0,  0.5,  1,  2};
constexpr float kShort = -6;  // ages far below this are as good as none

float bent(float age) {
  return std::log2(1 + std::exp2(age - kShort));
}

}  // namespace

Landmarks::Landmarks(uint64_t live_pages) : live_pages_(live_pages) {
  uint64_t last = 0;
  for (uint32_t j = 0; j < kLandmarks; ++j) {
    const double age = static_cast<double>(live_pages) * std::exp2(double{kAges[j]});
    ages_[j] = last = std::max(last + 1, static_cast<uint64_t>(age));
    const float before = j == 0 ? 0 : bent(kAges[j - 1]);
    steps_[j] = bent(kAges[j]) - before;
    longest_ += steps_[j];
  }
}

float Landmarks::lifetime(const Scores& scores) const {
  std::array<float, kLandmarks> lives;
  for (uint32_t j = 0; j < kLandmarks; ++j) lives[j] = 1 / (1 + std::exp(-scores[j]));
  return lifetime_of(lives);
}

// A write does not live to a landmark if it does not live to an earlier one.
float Landmarks::lifetime_of(const std::array<float, kLandmarks>& lives) const {
  float sum = 0;
  float alive = 1;
  for (uint32_t j = 0; j < kLandmarks; ++j) {
    alive = std::min(alive, lives[j]);
    sum += alive * steps_[j];
  }
  return sum;
}

}  // namespace streamfs::learning
