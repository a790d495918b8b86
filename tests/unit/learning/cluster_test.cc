#include "learning/cluster.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "base/types.h"
#include "learning/yong.h"

namespace streamfs::learning {
namespace {

Sample sample(uint16_t v, double lifetime, double weight = 1) {
  return {VStreamId{v}, lifetime, weight};
}

TEST(Cluster, OrdersByLifetimeAndKeepsLikeWithLike) {
  const auto ranks = cluster_by_lifetime(
      {sample(1, 100), sample(2, 1e6), sample(3, 110), sample(4, 9e5), sample(5, 1e4)}, 3);
  EXPECT_EQ(ranks, (std::vector<uint32_t>{0, 2, 0, 2, 1}));
}

TEST(Cluster, NoStreamStaysEmptyWhileLifetimesDiffer) {
  // Nearly all bytes in one place: every quantile seed falls there.
  std::vector<Sample> samples{sample(0, 1000, 1e9)};
  for (uint16_t v = 1; v < 8; ++v) samples.push_back(sample(v, 1000.0 * (1 << (2 * v)), 1));
  for (uint32_t k = 2; k <= 8; ++k) {
    const auto ranks = cluster_by_lifetime(samples, k);
    EXPECT_EQ(std::set<uint32_t>(ranks.begin(), ranks.end()).size(), k) << "k=" << k;
  }
}

TEST(Cluster, EqualLifetimesShareOneStream) {
  const auto ranks = cluster_by_lifetime({sample(1, 5), sample(2, 5), sample(3, 5)}, 4);
  EXPECT_EQ(std::set<uint32_t>(ranks.begin(), ranks.end()).size(), 1U);
}

TEST(Cluster, RanksAreMonotoneInLifetimeForAnyWeights) {
  for (uint32_t seed = 1; seed < 200; ++seed) {
    std::vector<Sample> samples;
    uint32_t x = seed;
    for (uint16_t v = 0; v < 20; ++v) {
      x = x * 1664525U + 1013904223U;
      samples.push_back(sample(v, 1 + x % 100000, x % 977));
    }
    const auto ranks = cluster_by_lifetime(samples, 5);
    for (size_t a = 0; a < samples.size(); ++a) {
      for (size_t b = 0; b < samples.size(); ++b) {
        if (samples[a].lifetime < samples[b].lifetime) {
          EXPECT_LE(ranks[a], ranks[b]) << "seed " << seed;
        }
      }
    }
  }
}

TEST(Yong, LifetimeIsTheMeanOverTheDead) {
  yong::LifetimeIdentifier identifier;
  EXPECT_EQ(identifier.lifetime(VStreamId{1}), 0);
  identifier.died(VStreamId{1}, 10, 30);
  identifier.died(VStreamId{1}, 10, 50);
  EXPECT_EQ(identifier.lifetime(VStreamId{1}), 30);
}

TEST(Yong, NothingLeavesTheDefaultByItself) {
  // The gap our seeding fills: with every vStream on pStream 0 the literal algorithm keeps it so.
  std::vector<yong::Mapped> all{{VStreamId{1}, 10, kDefaultPStream},
                                {VStreamId{2}, 1e6, kDefaultPStream}};
  yong::remap(all, 4);
  EXPECT_EQ(all[0].pstream, kDefaultPStream);
  EXPECT_EQ(all[1].pstream, kDefaultPStream);
}

TEST(Yong, EachGoesToTheNearestMean) {
  std::vector<yong::Mapped> all{{VStreamId{1}, 10, PStreamId{0}},
                                {VStreamId{2}, 1000, PStreamId{1}},
                                {VStreamId{3}, 900, PStreamId{0}}};
  yong::remap(all, 2);
  EXPECT_EQ(all[0].pstream.value, 0);
  EXPECT_EQ(all[2].pstream.value, 1);
}

}  // namespace
}  // namespace streamfs::learning
