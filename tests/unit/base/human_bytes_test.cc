#include "base/human_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace streamfs {
namespace {

std::string both(uint64_t first, uint64_t second) {
  const auto [one, other] = human_pair(first, second);
  return one + ", " + other;
}

TEST(HumanBytes, AreShownInTheLargestUnit) {
  EXPECT_EQ(human_bytes(0), "0 bytes");
  EXPECT_EQ(human_bytes(1023), "1023 bytes");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(5ULL << 40), "5.0 TiB");
}

TEST(HumanBytes, SizesThatRoundingMakesAlikeAreShownInBytes) {
  EXPECT_EQ(both(4U << 20, 1U << 20), "4.0 MiB, 1.0 MiB");
  EXPECT_EQ(both((1U << 30) + 4096, 1U << 30), "1073745920 bytes, 1073741824 bytes");
  EXPECT_EQ(both(5, 5), "5 bytes, 5 bytes");
}

}  // namespace
}  // namespace streamfs
