#include "learning/steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace streamfs::learning {
namespace {

TEST(HalfLog2, IsTwiceTheLogarithmRoundedDown) {
  for (uint64_t value = 0; value < 1 << 20; ++value) {
    const double exact = 2 * std::log2(static_cast<double>(value) + 1);
    ASSERT_EQ(half_log2(value), static_cast<uint8_t>(exact + 1e-12)) << value;
  }
}

TEST(HalfLog2, HoldsAnyNumber) {
  EXPECT_EQ(half_log2((uint64_t{1} << 40) - 1), 80);
  EXPECT_EQ(half_log2(UINT64_MAX - 1), 127);
  EXPECT_EQ(half_log2(UINT64_MAX), 127);
}

}  // namespace
}  // namespace streamfs::learning
