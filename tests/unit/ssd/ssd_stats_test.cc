// The statistics of an emulated SSD.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "base/types.h"
#include "ssd/geometry.h"
#include "ssd/ssd.h"
#include "ssd/stats.h"
#include "tests/support/temporary.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

TEST_F(SsdTest, StatisticsSurviveRestartAndStartAnewOnRequestFromAnotherProcess) {
  create(small_device());
  put(*open(), 0, 100, 1, 2);
  const auto ssd = open();
  EXPECT_EQ(ssd->stats().written_bytes, 100 * kPageBytes);
  EXPECT_EQ(ssd->stats().streams[2].written_bytes, 100 * kPageBytes);
  put(*ssd, 0, 1, 2);
  ASSERT_TRUE(ssd->trim(0, 60).ok());
  EXPECT_EQ(observe_stats(path_)->peak_live_bytes, 100 * kPageBytes);
  EXPECT_EQ(observe_stats(path_)->trimmed_bytes, 60 * kPageBytes);
  ASSERT_TRUE(reset_stats(path_).ok());
  EXPECT_EQ(ssd->stats().written_bytes, 0u);
  EXPECT_EQ(ssd->stats().peak_live_bytes, 40 * kPageBytes);
  EXPECT_EQ(ssd->stats().waf(), std::nullopt);
  put(*ssd, 1, 1, 3);
  EXPECT_EQ(observe_stats(path_)->written_bytes, kPageBytes);
  EXPECT_GT(observe_stats(path_)->time.write.p50_us, 0.0);
}

TEST_F(SsdTest, DirectivesNameStreamsAndHandlesAndUnknownOnesAreTheDefault) {
  EXPECT_EQ(stream_of(1, 3), PStreamId(3));
  EXPECT_EQ(stream_of(2, 3), PStreamId(3));
  EXPECT_EQ(stream_of(0, 3), PStreamId(0));
  EXPECT_EQ(stream_of(3, 3), PStreamId(0));
  create(small_device());
  const auto ssd = open();
  put(*ssd, 0, 1, 1, 3);
  EXPECT_EQ(ssd->stats().unknown_placements, 0u);
  put(*ssd, 1, 2, 1, 4);
  EXPECT_EQ(ssd->stats().unknown_placements, 1u);
  EXPECT_EQ(ssd->stats().streams[0].written_bytes, 2 * kPageBytes);
  EXPECT_EQ(ssd->stats().streams[3].written_bytes, kPageBytes);
}

TEST_F(SsdTest, VirtualTimeTellsThroughputBesideItsBoundAndLatencies) {
  create(small_device());
  const auto ssd = open();
  for (uint64_t page = 0; page < 4096; page += 16) put(*ssd, page, 16, 1);
  const SsdStats written = ssd->stats();
  EXPECT_GT(written.time.simulated_mb_per_s, 0);
  EXPECT_LE(written.time.simulated_mb_per_s, written.time.bound_mb_per_s);
  EXPECT_EQ(written.time.read.p50_us, 0);
  for (uint64_t page = 0; page < 100; ++page) (void)get(*ssd, page, 1);
  EXPECT_GT(ssd->stats().time.read.p50_us, 25);
  ssd->reset_stats();
  EXPECT_EQ(ssd->stats().time.simulated_mb_per_s, 0);
}

}  // namespace
}  // namespace streamfs::ssd
