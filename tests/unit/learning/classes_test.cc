#include "learning/classes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "learning/landmarks.h"

namespace streamfs::learning {
namespace {

constexpr uint64_t kAllLive = 16384;

void write(Classes& classes, const std::vector<float>& lifetimes, uint64_t pages) {
  for (uint64_t i = 0; i < pages; ++i) classes.place(lifetimes[i % lifetimes.size()], false);
}

TEST(Classes, EachLifetimeThatIsWrittenGetsOneOfItsOwn) {
  Classes classes(4, Landmarks(kAllLive));
  write(classes, {1, 3, 5, 7}, 1 << 16);
  EXPECT_EQ(classes.of(1), 0U);
  EXPECT_EQ(classes.of(3), 1U);
  EXPECT_EQ(classes.of(5), 2U);
  EXPECT_EQ(classes.of(7), 3U);
}

TEST(Classes, CutsGoWhereVolumeIs) {
  Classes classes(2, Landmarks(kAllLive));
  write(classes, {6, 6, 6, 6, 6, 6.5, 6.5, 6.5, 6.5, 6.5, 1}, 1 << 16);
  EXPECT_EQ(classes.of(1), 0U);
  EXPECT_EQ(classes.of(6), 1U);
}

TEST(Classes, CutsStayWhileTheyServe) {
  Classes classes(3, Landmarks(kAllLive));
  write(classes, {1, 4, 7}, 1 << 16);
  const std::vector<float> before = classes.edges();
  write(classes, {1.1F, 3.9F, 7}, 1 << 16);
  EXPECT_EQ(classes.edges(), before);
  write(classes, {1, 2, 3}, 1 << 18);
  EXPECT_NE(classes.edges(), before);
  EXPECT_EQ(classes.of(2), 1U);
}

TEST(Classes, PagesOfARequestStayTogetherInDoubt) {
  Classes classes(2, Landmarks(kAllLive));
  write(classes, {2, 6}, 1 << 16);
  const float edge = classes.edges().front();
  EXPECT_EQ(classes.place(edge + 0.5F, false), 1U);
  EXPECT_EQ(classes.place(edge - 0.5F, true), 1U) << "in doubt";
  EXPECT_EQ(classes.place(edge - 0.5F, false), 0U) << "another request";
  EXPECT_EQ(classes.place(edge + 2, true), 1U) << "no doubt";
}

TEST(Classes, OneClassIsForEverything) {
  Classes classes(1, Landmarks(kAllLive));
  write(classes, {1, 7}, 1 << 15);
  EXPECT_EQ(classes.count(), 1U);
  EXPECT_EQ(classes.of(7), 0U);
  EXPECT_EQ(Classes(0, Landmarks(kAllLive)).count(), 1U);
  EXPECT_EQ(Classes(100000, Landmarks(kAllLive)).count(), Classes::kCountMax);
}

TEST(Classes, OneLifetimeLeavesTheOthersEmpty) {
  Classes classes(8, Landmarks(kAllLive));
  write(classes, {5}, 1 << 15);
  const uint32_t cls = classes.of(5);
  EXPECT_LT(cls, 8U);
  EXPECT_EQ(classes.place(5, true), cls);
}

}  // namespace
}  // namespace streamfs::learning
