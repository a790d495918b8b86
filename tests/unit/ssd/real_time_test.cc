// Real time: the host waits as long as the flash would take, and no figure of the virtual clock
// changes. Nothing here sleeps: what counts is until when a caller would have to.
#include "ssd/real_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "ssd/background.h"
#include "ssd/counters.h"
#include "ssd/geometry.h"
#include "ssd/latency.h"
#include "ssd/ssd.h"
#include "tests/unit/ssd/ssd_fixture.h"

namespace streamfs::ssd {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// A TLC die of one plane: 12 pages every 2 ms.
constexpr NandShape kSlowShape = {1, 1, 1, 1, 16, Cell::kTlc};
constexpr double kBytesASecond = 12 * 4096 / 2e-3;

class RealTimeSsd : public SsdTest {
 protected:
  void SetUp() override {
    GeometryRequest request = small_device(1);
    request.pages_per_block = 0;
    request.nand = kSlowShape;
    create(request);
  }
  // Until when this many pages, sent at once, keep their host.
  static Clock::time_point written(Ssd& ssd, uint64_t pages) {
    Acknowledgement done;
    for (uint64_t page = 0; page < pages; page += 8)
      EXPECT_TRUE(ssd.write(page, content(page, 8, 1), {}, {}, &done).ok());
    return done.at();
  }
};

TEST_F(RealTimeSsd, WritesAreAcknowledgedNoFasterThanTheDiesProgramThem) {
  for (const double factor : {1.0, 0.5, 3.0}) {
    SetUp();
    const auto ssd = open({.real_time = factor});
    const Clock::time_point start = Clock::now();
    const double seconds = Seconds(written(*ssd, 2048) - start).count();
    const double expected = factor * 2048 * 4096 / kBytesASecond;
    EXPECT_NEAR(seconds / expected, 1, 0.05) << factor;  // less what the buffer holds
  }
}

TEST_F(RealTimeSsd, WithoutItNobodyIsKeptWaiting) {
  EXPECT_EQ(written(*open(), 2048), Clock::time_point::min());
  const auto real = open({.real_time = 1});
  std::vector<std::byte> page(kPageBytes);
  EXPECT_TRUE(real->read(0, page).ok());  // a caller that does not ask
}

TEST_F(RealTimeSsd, AReadTakesItsFlashAndWaitsBehindPrograms) {
  const auto ssd =
      open({.real_time = 100});  // a read takes 9.4 ms, so that the machine's pace fades
  ASSERT_TRUE(ssd->write(0, content(0, 4, 1), {}, {}).ok());
  const auto read = [&] {
    Acknowledgement done;
    std::vector<std::byte> bytes(kPageBytes);
    const Clock::time_point start = Clock::now();
    EXPECT_TRUE(ssd->read(0, bytes, &done).ok());
    return Seconds(done.at() - start).count();
  };
  const double expected = 100 * (80e-6 + 13.653e-6 + 10e-6);
  EXPECT_NEAR(read() / expected, 1, 0.5);
  ASSERT_TRUE(ssd->write(4, content(4, 8, 1), {}, {}).ok());  // a wordline: 200 ms
  EXPECT_GT(read(), 0.15);
}

TEST_F(RealTimeSsd, AFlushWaitsForTheProgramsOnlyWithoutPowerLossProtection) {
  for (const bool plp : {true, false}) {
    GeometryRequest request = small_device(1, plp);
    request.pages_per_block = 0;
    request.nand = kSlowShape;
    create(request);
    const auto ssd = open({.real_time = 100});
    ASSERT_TRUE(ssd->write(0, content(0, 1, 1), {}, {}).ok());
    Acknowledgement done;
    const Clock::time_point start = Clock::now();
    ASSERT_TRUE(ssd->flush(&done).ok());
    EXPECT_EQ(Seconds(done.at() - start).count() > 0.15, !plp);
  }
}

TEST_F(RealTimeSsd, NoFigureOfTheVirtualClockChanges) {
  std::vector<SsdStats> stats;
  for (const double factor : {0.0, 1.0}) {
    SetUp();
    const auto ssd = open({.real_time = factor});
    std::vector<uint64_t> model(4096);
    churn(*ssd, model, 1, 600);
    stats.push_back(ssd->stats());
  }
  EXPECT_GT(stats[0].gc_bytes, 0u);
  EXPECT_EQ(stats[0].gc_bytes, stats[1].gc_bytes);
  const VirtualTime &without = stats[0].time, &with = stats[1].time;
  EXPECT_EQ(without.write.p50_us, with.write.p50_us);
  EXPECT_EQ(without.write.p999_us, with.write.p999_us);
  EXPECT_EQ(without.read.p99_us, with.read.p99_us);
  EXPECT_EQ(without.simulated_mb_per_s, with.simulated_mb_per_s);
  EXPECT_EQ(without.bound_mb_per_s, with.bound_mb_per_s);
  EXPECT_EQ(without.seconds, with.seconds);
}

TEST_F(RealTimeSsd, IdleWorkGoesAtTheSpeedOfTheFlash) {
  for (const double factor : {0.0, 1.0}) {
    SetUp();
    const auto ssd = open({.real_time = factor});
    for (uint64_t i = 0; i < 3; ++i)  // by now every block has dead pages
      for (uint64_t page = i; page < 4096 - 8; page += i == 0 ? 8 : 24)
        ASSERT_TRUE(ssd->write(page, content(page, 8, i), {}, {}).ok());
    ssd->reset_stats();
    const Clock::time_point start = Clock::now();
    const IdleReport report =
        ssd->run_idle({.pages = 256, .free_blocks = 200, .valid_limit = 0.95});
    EXPECT_EQ(report.gc_pages, 256u);
    const double seconds = Seconds(Clock::now() - start).count();
    if (factor > 0) {
      EXPECT_GT(seconds, 256 * 4096 / kBytesASecond);
    }
  }
}

TEST(LatencyOnTheWall, AHostThatSendsWhenItIsAnsweredFillsTheDies) {
  const Result<Geometry> geometry = plan_geometry({.user_bytes = uint64_t{64} << 20,
                                                   .spare = 0.15,
                                                   .streams = 1,
                                                   .nand = NandShape{2, 1, 2, 4, 16, Cell::kTlc}});
  ASSERT_TRUE(geometry.ok());
  Counters counters;
  LatencyModel latency(timing_of(Cell::kTlc), *geometry, counters);
  uint64_t now = 0;
  for (Ppn page = 0; page < 9600; page += 48) {
    latency.wall_arrives(now, 48);
    latency.begin_write(48);
    latency.programmed(page, 48, true);
    latency.end_write();
    now = latency.wall_accepted_ns();
  }
  const double expected_ns = 9600.0 / 48 * 2e6 / 4;  // four dies
  EXPECT_NEAR(static_cast<double>(now) / expected_ns, 1, 0.06);
  EXPECT_GT(static_cast<double>(latency.wall_drained_ns()) / expected_ns, 1);
  // Long quiet: the queues are empty, and the next write is answered as fast as the first.
  latency.wall_arrives(now + 1'000'000'000, 1);
  EXPECT_EQ(latency.wall_accepted_ns() - now, 1'000'000'000u + 10'000 + 1'300);
}

}  // namespace
}  // namespace streamfs::ssd
